"""Scores of translations: BLEU, chrF, exact match."""

import pytest
import sacrebleu

from tests.tasks.translation_tasks import translation, write
from tfstudy.errors import UserError
from tfstudy.evaluation.error_kinds import summarize_errors
from tfstudy.evaluation.evaluate import Output, summarise_outputs
from tfstudy.runs.schema import Prediction
from tfstudy.tasks.translation.subwords import learn


def scored(root, predictions, **config):
    task = translation(split="corpus", root=root, **config)
    return task.score([task.tokens(p) for p in predictions], task.examples("test"))


def test_scores_are_those_of_sacrebleu_on_the_raw_text(tmp_path):
    gold = ["Der Hund, der bellt, schläft.", "Zwei Katzen (grau) spielen!", "Ein Haus am See ist groß."]
    guess = ["Der Hund der schläft, bellt.", "Zwei Katzen spielen!", "Ein Haus am großen See."]
    root = write(tmp_path, train=[("a dog", "ein Hund")], test=[(f"s{i}", g) for i, g in enumerate(gold)])
    for tokenize in ("13a", "intl", "char"):
        scores = scored(root, guess, bleu_tokenizer=tokenize)
        assert scores["bleu"] == pytest.approx(sacrebleu.corpus_bleu(guess, [gold], tokenize=tokenize).score / 100)
        assert scores["chrf"] == pytest.approx(sacrebleu.corpus_chrf(guess, [gold]).score / 100)
    assert scores["exact_match"] == 0
    by_words = [
        "no_repetition",
        "no_memorisation",
        "known_words",
        "long_word_recall",
    ]  # no word is in both source and target
    assert list(scores) == ["bleu", "chrf", "exact_match", "token_accuracy", *by_words]


def test_bleu_is_what_its_paper_says(tmp_path):
    """Precisions 5/6, 3/5, 2/4 and 1/3 and a brevity penalty of exp(1 - 7/6), by hand."""
    root = write(tmp_path, train=[("a", "b")], test=[("s", "a b c d e f g")])
    bleu = scored(root, ["a b c d x f"])["bleu"]
    assert bleu == pytest.approx((5 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25 * 2.718281828 ** (1 - 7 / 6))


def test_correct_translations_score_exactly_one(root, embedded):
    for task in (translation(split="corpus", root=root), embedded):
        for n in (1, 30):
            examples = task.examples("test")[:n]
            scores = task.score([e.target for e in examples], examples)
            assert set(scores.values()) <= {0.0, 1.0}  # a phenomenon may not occur in one sentence
            assert [scores[name] for name in ("bleu", "chrf", "exact_match", "token_accuracy")] == [1.0] * 4


def test_bleu_is_0_for_targets_of_less_than_four_words(tmp_path):
    root = write(tmp_path, train=[("a", "b")], test=[("s", "a b c")])
    scores = scored(root, ["a b c"])
    assert (scores["bleu"], scores["chrf"], scores["exact_match"]) == (0.0, 1.0, 1.0)


def test_empty_predictions_score_0(root):
    task = translation(split="corpus", root=root)
    examples = task.examples("test")
    assert set(task.score([()] * len(examples), examples).values()) == {0.0}
    assert all(value != value for value in task.score([], []).values())


def test_exact_match_compares_the_text_and_not_the_subwords(root):
    task = translation(split="corpus", root=root)
    example = task.examples("test")[0]
    cut = learn([], 256).encode([task.text(example.target)])[0]
    assert cut != example.target
    scores = task.score([cut], [example])
    assert scores["exact_match"] == scores["bleu"] == 1.0
    assert scores["token_accuracy"] < 1.0


def test_signatures_describe_how_scores_were_computed(root):
    task = translation(split="corpus", root=root, bleu_tokenizer="intl")
    assert task.signatures() == {
        "bleu": f"nrefs:1|case:mixed|eff:no|tok:intl|smooth:exp|version:{sacrebleu.__version__}",
        "chrf": f"nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:{sacrebleu.__version__}",
    }


def test_tokenised_text_is_scored_without_warnings(tmp_path, caplog):
    root = write(tmp_path, train=[("a", "b")], test=[(f"a {i}", f"b b {i} b .") for i in range(120)])
    assert scored(root, [f"b b {i} b ." for i in range(120)])["bleu"] == 1.0
    assert caplog.records == []


JAPANESE = [("i like dogs", "私 は 犬 が 好き です 。"), ("he runs", "彼 は 走 る 。")]


@pytest.mark.parametrize("code", ["ja", "JA", "ja_JP", "jpn"])
def test_japanese_is_scored_by_character_without_spaces(tmp_path, code):
    root = write(tmp_path, train=[("a dog", "犬")], test=JAPANESE)
    scores = scored(root, ["私は犬が好きです。", "彼 は 走る。"], target_language=code)
    assert (scores["bleu"], scores["chrf"], scores["exact_match"]) == (1.0, 1.0, 1.0)
    guess, gold = ["私は猫が好きです。", "彼は走る。"], [t.replace(" ", "") for _, t in JAPANESE]
    wanted = sacrebleu.corpus_bleu(guess, [gold], tokenize="char").score / 100
    assert scored(root, guess, target_language=code)["bleu"] == pytest.approx(wanted)
    assert "tok:char" in translation(split="corpus", root=root, target_language=code).signatures()["bleu"]


@pytest.mark.parametrize(("code", "given"), [("", "not set"), ("jp", "'jp'"), ("japanese", "'japanese'")])
@pytest.mark.parametrize("train", [JAPANESE, [("a dog", "สุนัขตัวหนึ่ง")], [("a dog", "ཁྱི་ཞིག")]])
def test_targets_without_spaces_between_words_need_a_target_language(tmp_path, train, code, given):
    root = write(tmp_path, train=train, test=[("the dog", "犬")])
    message = (
        rf"such as Japanese, but data\.target_language is {given}: set it to one of ja, th, .* zh, or set data\.bleu"
    )
    with pytest.raises(UserError, match=message):
        translation(split="corpus", root=root, target_language=code)


def test_targets_without_spaces_are_accepted_with_what_decides_their_score(tmp_path):
    root = write(tmp_path, train=JAPANESE, test=[("a dog", "犬")])
    for config in ({"target_language": "ja"}, {"target_language": "zh"}, {"bleu_tokenizer": "char"}, {"reverse": True}):
        assert translation(split="corpus", root=root, **config)


def test_a_language_without_spaces_is_refused_for_targets_in_another_script(tmp_path):
    root = write(tmp_path, train=[("a dog", "seekor anjing")], test=[("a cat", "seekor kucing")])
    with pytest.raises(UserError, match=r"data\.target_language is 'my', .* but the targets are in another script"):
        translation(split="corpus", root=root, target_language="my")
    translation(split="corpus", root=root, target_language="my", bleu_tokenizer="13a")


@pytest.mark.parametrize(("gold", "made"), [("彼女 は 医者 です 。", "彼女は 医者 です 。"), ("ein  Hund", "ein Hund")])
def test_all_scores_agree_on_what_is_right(tmp_path, gold, made):
    """Exact match, exact match at the oracle length, and the counts of errors."""
    language = "ja" if "彼" in gold else "de"
    root = write(tmp_path, train=[("a", gold)], test=[("she", gold)])
    task = translation(split="corpus", root=root, target_language=language, drop_overlap=False)
    output = Output(task.target_tokens(made), task.target_tokens(made), 1.0, False)
    found = summarise_outputs(task, task.examples("test"), [output])["metrics"]
    assert (found["exact_match"], found["oracle_length_exact_match"]) == (1, 1)
    prediction = Prediction("she", gold, made)
    assert list(summarize_errors([prediction])) == ["correct"]


def test_chinese_is_scored_by_sacrebleus_own_tokeniser(tmp_path):
    gold, guess = "我用Open Office 3版本工作", "我 用 Open Office 2 版本工作"
    root = write(tmp_path, train=[("a dog", "狗")], test=[("i work with it", gold)])
    assert "tok:zh" in translation(split="corpus", root=root, target_language="zh").signatures()["bleu"]
    wanted = sacrebleu.corpus_bleu([guess], [[gold]], tokenize="zh").score / 100
    assert scored(root, [guess], target_language="zh")["bleu"] == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("code", "gold"),
    [("my", "anjing itu tidur di rumah"), ("ja", "彼女 は 医者 です 。"), ("zh", "我 用 Open 3 。")],
)
@pytest.mark.parametrize("tokenizer", ["13a", "intl", "char", "zh"])
def test_right_outputs_are_right_for_every_tokeniser(tmp_path, code, gold, tokenizer):
    root = write(tmp_path, train=[("a dog", gold[:3])], test=[("a", gold)])
    scores = scored(root, [gold], target_language=code, bleu_tokenizer=tokenizer)
    assert (scores["bleu"], scores["chrf"], scores["exact_match"]) == pytest.approx((1, 1, 1))


@pytest.mark.parametrize("config", [{"target_language": "ja"}, {"bleu_tokenizer": "char"}])
def test_targets_without_spaces_have_no_scores_by_words_whatever_says_so(tmp_path, config):
    root = write(
        tmp_path, train=[("a dog", "犬がいます"), ("a cat", "猫がいます")], test=[("i like dogs", "犬が好きです")]
    )
    scores = scored(root, ["犬が好きです"], **config)
    assert scores["bleu"] == 1.0
    assert not {"known_words", "long_word_recall"} & {*scores}
