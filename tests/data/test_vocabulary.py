"""Vocabularies: ids and tokens."""

from hypothesis import given
from hypothesis import strategies as st

from tfstudy.data.encoding import BOS, EOS, PAD, SPECIAL, UNK, Vocab


def test_special_tokens_have_the_first_ids():
    assert [Vocab("xy").tokens[i] for i in (PAD, BOS, EOS, UNK)] == list(SPECIAL)


@given(st.lists(st.lists(st.text(max_size=5), max_size=6), max_size=6))
def test_what_is_encoded_is_decoded_to_itself(sequences):
    vocab = Vocab({token for sequence in sequences for token in sequence})
    for sequence in sequences:
        assert vocab.decode(vocab.encode(sequence)) == tuple(sequence)


@given(st.sets(st.text(max_size=3), max_size=9), st.randoms())
def test_ids_do_not_depend_on_the_order_of_tokens(tokens, random):
    shuffled = list(tokens)
    random.shuffle(shuffled)
    assert Vocab(tokens).tokens == Vocab(shuffled).tokens
    assert len(Vocab(tokens)) == len(tokens) + 4


def test_an_unseen_token_is_unknown():
    vocab = Vocab("ab")
    assert vocab.encode("azb") == [4, UNK, 5]
    assert vocab.decode([4, UNK, 5]) == ("a", "<unk>", "b")
    assert ("a" in vocab, "z" in vocab) == (True, False)


def test_decoding_ends_at_the_first_eos():
    assert Vocab("ab").decode([4, EOS, 5, EOS]) == ("a",)


def test_a_word_that_is_spelt_like_a_special_token_is_none():
    assert EOS not in Vocab(["<eos>", "a"]).encode(["<eos>", "a"])
