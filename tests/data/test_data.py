"""Vocabularies, batches as a pure function of (seed, step), and the data module in a plain trainer."""

import itertools
from collections import Counter

import lightning
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tasks.base import Example, Splits, Task, TaskConfig
from tfstudy.data.batching import Batches, mix
from tfstudy.data.encoding import Encoded, pad
from tfstudy.data.module import TaskData
from tfstudy.data.ragged import OVERHEAD, cut, share
from tfstudy.data.vocabulary import BOS, EOS, PAD, SPECIAL, UNK, Vocab

WORDS = "abcdefgh"
LENGTHS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=40)


class Reverse(Task):
    """a b c -> c b a"""

    def __init__(self, config):
        self.rows = [tuple(WORDS[(i * k) % 8] for k in range(1, 2 + i % 6)) for i in range(50)]

    @classmethod
    def experiments(cls):
        return {"all": "nothing is held out"}

    def splits(self):
        return Splits("train", "validation", ("test",))

    def examples(self, split):
        rows = {"train": self.rows[:37], "validation": self.rows[37:43], "test": self.rows[43:]}[split]
        return [Example(row, row[::-1], {"length": len(row)}) for row in rows]


class Unvalidated(Reverse):
    def splits(self):
        return Splits("train", None, ("test",))


def encoded(lengths):
    examples = [Example(("a",) * source, ("b",) * target, {}) for source, target in lengths]
    return Encoded(examples, Vocab("a"), Vocab("b"))


def epoch(batches, number=0):
    return [batches.index(step).tolist() for step in range(number * len(batches), (number + 1) * len(batches))]


def flat(lists):
    return list(itertools.chain.from_iterable(lists))


@pytest.fixture
def task():
    return Reverse(TaskConfig(split="all"))


# Vocabularies


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


# Tensors


@given(st.lists(st.lists(st.integers(1, 9), max_size=6), max_size=6))
def test_padding_follows_the_tokens(sequences):
    out, lengths = pad(sequences)
    assert out.shape == (len(sequences), max(map(len, sequences), default=0))
    assert lengths.tolist() == [len(s) for s in sequences]
    assert [row[:n].tolist() for row, n in zip(out, lengths.tolist(), strict=True)] == sequences
    assert all((row[n:] == PAD).all() for row, n in zip(out, lengths.tolist(), strict=True))


def test_a_source_ends_with_eos_and_a_target_begins_with_bos():
    data = Encoded([Example(("a", "z"), ("b",), {}), Example((), ("b", "b"), {})], Vocab("a"), Vocab("b"))
    assert data.source.tolist() == [[4, UNK, EOS], [EOS, PAD, PAD]]
    assert data.target.tolist() == [[BOS, 4, EOS, PAD], [BOS, 4, 4, EOS]]


@given(LENGTHS, st.data())
def test_rows_are_cut_to_their_own_longest(lengths, data):
    index = torch.tensor(data.draw(st.lists(st.integers(0, len(lengths) - 1), min_size=1, max_size=5)))
    part = encoded(lengths).rows(index)
    assert part.source.shape == (len(index), max(lengths[i][0] for i in index) + 1)
    assert part.target.shape == (len(index), max(lengths[i][1] for i in index) + 2)
    assert [(row != PAD).sum() for row in part.source] == [lengths[i][0] + 1 for i in index]
    assert [(row != PAD).sum() for row in part.target] == [lengths[i][1] + 2 for i in index]


def pairs(parts):
    """Each row's source and target, without padding."""
    blocks = [block for part in parts for block in part]
    rows = [row for block in blocks for row in zip(block.source.tolist(), block.target.tolist(), strict=True)]
    return Counter(tuple(tuple(token for token in ids if token != PAD) for ids in row) for row in rows)


@given(LENGTHS, st.integers(1, 4), st.integers(1, 3), st.integers(1, 5))
def test_ranks_share_a_batch_out_and_their_token_counts_add_up(lengths, parts, blocks, ranks):
    data, index = encoded(lengths), torch.randperm(len(lengths))
    whole, shares = data.rows(index), [data.batch(index, parts, blocks, rank, ranks) for rank in range(ranks)]
    assert sum(share.tokens for share in shares) == pytest.approx((whole.target[:, 1:] != PAD).sum())
    assert sum((pairs(share.parts) for share in shares), Counter()) == pairs([[whole]])
    assert all(len(share.parts) <= parts and all(0 < len(p) <= blocks for p in share.parts) for share in shares)


def test_a_batch_of_one_part_and_block_keeps_its_order():
    data, index = encoded([(1, 5), (3, 1), (2, 2)]), torch.tensor([0, 2, 1])
    [[rows]] = data.batch(index).parts
    assert torch.equal(rows.target, data.rows(index).target)


@given(st.lists(st.integers(1, 50), max_size=30), st.integers(1, 6))
def test_parts_are_consecutive_and_differ_by_less_than_a_row(lengths, parts):
    found = share(np.array(lengths, dtype=np.int64), parts)
    assert [i for start, end in found for i in range(start, end)] == list(range(len(lengths)))
    assert len(found) <= parts
    for start, end in found:
        assert end > start
        assert sum(lengths[start:end]) < sum(lengths) / parts + max(lengths) + 1e-9


@given(st.lists(st.tuples(st.integers(1, 300), st.integers(1, 300)), max_size=7), st.integers(1, 4))
def test_a_part_is_cut_where_padding_is_least(lengths, blocks):
    source, target = (np.array([pair[side] for pair in lengths], dtype=np.int64) for side in (0, 1))

    def cost(cuts):
        return sum(
            (end - start) * (source[start:end].max() + target[start:end].max()) + OVERHEAD for start, end in cuts
        )

    n, found = len(lengths), cut(source, target, blocks)
    ways = [
        list(itertools.pairwise([0, *inner, n]))
        for size in range(min(blocks, n))
        for inner in itertools.combinations(range(1, n), size)
    ]
    assert cost(found) == min(map(cost, ways), default=0)
    assert [i for start, end in found for i in range(start, end)] == list(range(n))
    assert len(found) <= blocks


# Batches

BATCHING = st.sampled_from(["length", "random"])


@given(LENGTHS, st.integers(1, 12), st.sampled_from([0, 1, 5, 30]), BATCHING, st.integers(0, 9), st.integers(0, 3))
def test_every_epoch_holds_every_row_once(lengths, batch_size, batch_tokens, batching, seed, number):
    batches = Batches(encoded(lengths), batch_size, batch_tokens, batching, seed)
    assert sorted(flat(epoch(batches, number))) == list(range(len(lengths)))
    assert all(1 <= len(rows) <= batch_size for rows in epoch(batches, number))


@given(LENGTHS, st.integers(1, 12), st.integers(1, 40), st.integers(0, 3))
def test_no_batch_of_more_than_one_row_has_more_padded_tokens_than_allowed(lengths, batch_size, batch_tokens, number):
    data = encoded(lengths)
    for rows in epoch(Batches(data, batch_size, batch_tokens, "length"), number):
        part = data.rows(torch.tensor(rows))
        assert len(rows) == 1 or len(rows) * max(part.source.shape[1], part.target.shape[1]) <= batch_tokens


def test_batches_are_as_full_as_the_bounds_allow():
    data = encoded([(1, 1)] * 10 + [(8, 1)] * 10)
    assert sorted(map(len, epoch(Batches(data, 8, batching="random")))) == [4, 8, 8]
    assert sorted(map(len, epoch(Batches(data, 8, 27, "length")))) == [3, 3, 3, 3, 8]


@given(LENGTHS, BATCHING, st.integers(0, 99), st.lists(st.integers(0, 60), max_size=8))
def test_a_batch_depends_on_seed_and_step_alone(lengths, batching, seed, steps):
    data = encoded(lengths)
    asked = Batches(data, 4, batching=batching, seed=seed)
    for step in steps:
        assert torch.equal(asked.index(step), Batches(data, 4, batching=batching, seed=seed).index(step))


def test_batches_do_not_depend_on_the_global_generator():
    orders = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        before = torch.get_rng_state()
        orders.append(epoch(Batches(encoded([(1, 1)] * 30), 4)))
        assert torch.equal(torch.get_rng_state(), before)
    assert orders[0] == orders[1]


@pytest.mark.parametrize("batching", ["length", "random"])
def test_neighbouring_seeds_and_epochs_have_different_orders(batching):
    data = encoded([(i % 3, i % 4) for i in range(60)])
    orders = [
        tuple(flat(epoch(Batches(data, 8, batching=batching, seed=seed), number)))
        for seed in range(5)
        for number in range(5)
    ]
    assert len(set(orders)) == 25


def test_length_batches_hold_targets_of_like_length_and_come_in_any_order():
    data = encoded([(3, i % 8) for i in range(64)])
    rows = epoch(Batches(data, 8, batching="length"))
    assert all(len({i % 8 for i in batch}) == 1 for batch in rows)
    lengths = [batch[0] % 8 for batch in rows]
    assert lengths != sorted(lengths)


def test_random_batches_mix_lengths():
    data = encoded([(3, i % 8) for i in range(64)])
    assert min(len({i % 8 for i in batch}) for batch in epoch(Batches(data, 8, batching="random"))) > 1


def test_rows_of_the_same_length_meet_different_neighbours_in_every_epoch():
    batches = Batches(encoded([(2, 2)] * 40), 4)
    first, second, third = ({frozenset(rows) for rows in epoch(batches, number)} for number in range(3))
    assert not first & second & third


def test_mixed_seeds_of_neighbours_have_nothing_in_common():
    seeds = [mix(seed, step) for seed in range(60) for step in range(60)]
    assert len(set(seeds)) == 3600
    assert all(0 <= s < 2**63 for s in seeds)
    flips = [bin(mix(seed, step) ^ mix(seed, step + 1)).count("1") for seed in range(60) for step in range(60)]
    flips += [bin(mix(seed, step) ^ mix(seed + 1, step)).count("1") for seed in range(60) for step in range(60)]
    assert sum(flips) / len(flips) == pytest.approx(31.5, abs=0.5)


# The data module


class Watcher(lightning.LightningModule):
    """Learns nothing, but keeps the rows that it was given."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))
        self.trained, self.validated = [], []

    def training_step(self, batch, batch_idx):
        self.trained.append(pairs(batch.parts))
        return self.weight * batch.tokens

    def validation_step(self, batch, batch_idx):
        self.validated.append(pairs(batch.parts))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


def trainer(folder, **options):
    quiet = {"enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
    return lightning.Trainer(
        accelerator="cpu", logger=False, default_root_dir=folder, num_sanity_val_steps=0, **quiet, **options
    )


def split(data, name):
    return pairs([[data.encoded[name].rows(torch.arange(len(data.encoded[name])))]])


@pytest.mark.parametrize("parts", [0, 1, 5])
def test_a_plain_trainer_sees_every_row_once_an_epoch(task, tmp_path, parts):
    module, data = Watcher(), TaskData(task, batch_size=8, parts=parts)
    trainer(tmp_path, max_epochs=2).fit(module, data)
    assert len(module.trained) == 2 * len(data.batches) == 2 * 5
    for number in (0, 1):
        assert sum(module.trained[5 * number : 5 * number + 5], Counter()) == split(data, "train")
    assert sum(module.validated, Counter()) == split(data, "validation") + split(data, "validation")


def test_a_trainer_gets_the_batches_of_the_steps_in_order(task, tmp_path):
    module, data = Watcher(), TaskData(task, batch_size=8, seed=3)
    data.epoch = 3
    trainer(tmp_path, max_epochs=4).fit(module, data)
    assert module.trained == [pairs([[data.encoded["train"].rows(data.batches.index(step))]]) for step in range(12)]


@pytest.mark.filterwarnings("ignore:Total length of `list` across ranks is zero")
def test_a_task_without_validation_trains(tmp_path):
    module, data = Watcher(), TaskData(Unvalidated(TaskConfig(split="all")), batch_size=8)
    trainer(tmp_path, max_epochs=1).fit(module, data)
    assert sum(module.trained, Counter()) == split(data, "train")
    assert module.validated == []


def test_vocabularies_come_from_the_train_split_alone(task, monkeypatch):
    real = Reverse.examples
    odd = [Example(("q",), ("q",), {})]
    monkeypatch.setattr(Reverse, "examples", lambda self, split: real(self, split) + (split != "train") * odd)
    data = TaskData(task)
    assert "q" not in data.source_vocab
    assert data.encoded["validation"].source[-1].tolist()[:2] == [UNK, EOS]


def test_loaders_work_without_a_trainer(task):
    data = TaskData(task, batch_size=8)
    loader = data.train_dataloader()
    assert len(loader) == len(list(loader)) == len(data.batches)
    assert sum((pairs(batch.parts) for batch in data.val_dataloader()), Counter()) == split(data, "validation")


def test_the_lightning_module_learns_in_a_plain_trainer(task, tmp_path, build):
    from tfstudy.config.schema import TrainConfig
    from tfstudy.training.module import Seq2Seq

    data, losses = TaskData(task, batch_size=8), []
    for epochs in (1, 6):
        model = build("lstm", dropout=0.0, vocabs=(len(data.source_vocab), len(data.target_vocab)))
        module = Seq2Seq(
            model, len(data.target_vocab), TrainConfig(learning_rate=0.02, warmup_steps=0, schedule="constant")
        )
        plain = trainer(tmp_path, max_epochs=epochs)
        plain.fit(module, data)
        losses.append(float(plain.callback_metrics["validation_loss"]))
    assert losses[1] < losses[0] < 3
