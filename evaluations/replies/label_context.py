"""The words around a label: they deny it, doubt it, give it to another side, or leave it unaffected."""

import re
import unicodedata
from typing import Final

from evaluations.domain.choices import Choice
from evaluations.domain.rubrics import AspectSpec

# Marks that some models write around a label unasked.
IGNORED_MARKS: Final = " \t*_`\"'“”‘’«»[](){}<>$\\.!,:;#•。！，：；、【】「」"
SIDE_WORDS: Final = (
    r"(?:the\s)?(?:response|answer|assistant|output|candidate|model|option|choice|summary|system|antwort|réponse"
    r"|respuesta|risposta|resposta|ответ|回答|回复|答案|답변|응답)"
)

# Words that may reverse a verdict, or doubt it, in the languages that models answer in.
DOUBTS: Final = re.compile(
    r"\b(?:not|no|nor|neither|never|none|nothing|cannot|wrong\w*|incorrect\w*|false|worse|worst|inferior|weaker"
    r"|poor\w*|bad\w*|ignor\w+|disregard\w*|wait|actually|however|but|although|though|unless|instead|rather|correction"
    r"|reconsider\w*|mistak\w+|errors?|sorry|apolog\w+|oops|hmm+|revis\w+|chang\w+|switch\w*|second thoughts?"
    r"|retract\w*|unsure|uncertain\w*|maybe|perhaps|possibly|might|could|would|should|either|both|tie[ds]?|equal\w*|otherwise"
    r"|revers\w+|opposite|swap\w*|contrary|reject\w*|jok\w+|kidding|hypothetical\w*|example|quot\w+|says?|said|claim\w*"
    r"|states?|stated|plant\w+|inject\w+|fail\w*|los(?:e|es|t|ing)|lack\w*|miss(?:es|ed|ing)?|if|whether|or"
    r"|less|least|draft|guess\w*|flip\w*|except|scratch|forget|cancel\w*|withdr\w+|undo|hold on|hang on|on reflection"
    r"|random\w*|arbitrar\w+|placeholder|template|wants?|demand\w*|instructs|instructed|asked|told|orders?|ordered"
    r"|trick\w*|manipulat\w+|weak\w*|behind|short|flaw\w*|useless|harmful|dangerous|misleading|terribl\w+|awful\w*"
    r"|(?:un|in|ir)(?:helpful|accurate|safe|clear|relevant|sufficient|complete|adequate|satisfactory|acceptable)\w*"
    r"|nicht|kein\w*|nein|nie|weder|aber|jedoch|doch|sondern|falsch\w*|schlecht\w*|moment|eigentlich|vielleicht|wenn"
    r"|würde|oder|beide|pas|non|ne|jamais|ni|mais|cependant|toutefois|plutôt|faux|erreur|pire|si|attendez|finalement|ou"
    r"|nunca|pero|aunque|sino|peor|incorrect[oa]|quizás?|espera|mai|ma|però|tuttavia|peggi\w+|invece|errore|sbagliat\w+"
    r"|anzi|forse|não|nem|mas|porém|contudo|pior|errad\w+|talvez|aliás|niet|geen|nee|maar|echter|slechter|inte|ikke|ej"
    r"|nej|nie|ale|jednak|gorsz\w+|değil|ama|yanlış|không|tidak|bukan"
    r"|не|нет|ни|но|однако|хуже|неверн\w+|ошиб\w+|возможно|если|впрочем|или|зато|наоборот)\b"
    r"|n['’]t\b|\bn['’]|\bd['’]autre|[?？]|[不没沒非否无無但却卻差错錯或误誤劣反另]|其实|等等|也许|可能|如果|更正|然而"
    r"|ない|ません|しかし|ただし|でも|間違|悪|いや|訂正|実は|逆|아니|않|못|하지만|그러나|틀|오류|나쁘|정정|사실",
    re.IGNORECASE,
)
# What is said of a tie, and doubts any other label.
TIE_WORDS: Final = re.compile(r"\b(?:both|equal\w*|tied?|same|no (?:clear )?(?:winner|difference))\b", re.IGNORECASE)
# Before a label in its own clause.
AGAINST: Final = re.compile(
    r"\b(?:not|never|neither|nor|cannot|no longer|rather than|instead of|wrong|incorrect|reject\w*|ignor\w+"
    r"|disregard\w*|against|says|said|claims|claimed|writes|wrote|contains|ends (?:in|with)|demands|asks|tells|told"
    r"|instructs|wants|(?:would|could|might) (?:be|say)|if|unless|whether|draft|guess|possible|asked to|example|tries"
    r"|trying|tried|make me|refus\w+|anything but|opposite|except|doubt\w*|worse|worst|loser|losing|minimum|maximum"
    r"|ends\W{0,9}\Z|put|insert\w*|append\w*|embed\w*|inject\w*|plant\w*|includes|included|quot\w+|last line|tempt\w+"
    r"|naive\w*|initial\w*|choose one|(?:weak|poor)(?:er|est)(?:\s\w+)?\Z|inferior(?:\s\w+)?\Z"
    r"|(?:less|least)\s\w+\s\w+\Z"
    r"|last word"
    r"|(?:response|assistant|answer|output) (?:(?:\w )?has the|\w['’]s (?:response|answer|output|text) (?:is|has|was)"
    r"|\w(?:['’]s \w+)? (?:suggests|recommends|proposes|requests|reads))"
    r"|nicht|kein\w*|weder|schlechter\w*|schwächer\w*|pas|jamais|pire|non|nunca|peor|não|pior|peggio\w*|не|нет|ни|хуже"
    r"|худш\w+)\b|n['’]t\b|[差劣悪]|나쁜|أسوأ|~~\W{0,9}\Z|<(?:reject\w*|loser|worse)>\W{0,9}\Z"
    r"|\A\W*(?:(?:the )?(?:output )?(?:format|template)|(?:my )?(?:thoughts?|thinking)(?: process| so far)?)\W*\Z"
    r"|(?:\bor|[/|])\s?[*\"'(]{0,3}\Z"
    r"|[不没沒非否无無]|ない|않|아니",
    re.IGNORECASE,
)
# Marks that cross a side out.
DENIAL_MARKS: Final = tuple("❌❎✗✘✖✕×👎🚫⛔☒☐")
# Before a label that ends a quotation with other words in it.
QUOTED: Final = re.compile(r"[\"“„«]\s{0,3}[^\W_][^\"“„«\n]{0,200}\Z")
CLOSING_QUOTES: Final = tuple('"”“»')
# Before a label in its sentence: it was only a first thought, or somebody else's.
AT_FIRST: Final = re.compile(
    r"\b(?:(?:at first(?: \w+)?|initially|at a glance)\s?,\W{0,9}"
    r"|according to (?:the )?(?:response|assistant|answer|output)\b[^.!?\n]{0,40}"
    r"|(?:were|had) (?:it|they|a|b)\b[^.!?\n]{0,40},[^.!?\n]{0,30})\Z",
    re.IGNORECASE,
)
# Before a label that is one of several in a row.
LISTED_LABEL: Final = re.compile(r"\]\][^\w\n]{0,4}(?:(?:or|and)[^\w\n]{0,3})?\Z", re.IGNORECASE)
CLAUSE_END: Final = re.compile(r"[.!?;:,\n。！？；：，、]")
LEAD_MARKS: Final = " \t\n:：\"'“”‘’«»*_`(["
REFUTATION: Final = re.compile(
    r"[\s\"'”’*_`)\]]{0,6}(?:[?？]|(?:(?:would|could|might|may|is|was|are|seems|will)\s)?"
    r"(?:not|never|(?:the )?wrong|incorrect|(?:the )?worse|false|mistaken|a mistake|what)\b"
    r"|(?:is|was|would|could|do|does|did)n['’]t\b|~~|would\b"
    r"|or\b|only\b|than nothing|ist nicht|wäre|n['’]est pas|no es|não é|не\b|不)",
    re.IGNORECASE,
)
# After a verdict in JSON: it is retracted.
TAKEN_BACK: Final = re.compile(
    r"\b(?:wait|actually|correction|(?:scratch|strike) that|on second thoughts?|on re(?:flection|reading)|reconsider\w*"
    r"|oops|sorry|apolog\w+|hmm+|(?:ignore|disregard) (?:that|this|it|the above|my)"
    r"|(?:i|that) (?:was|is|am) (?:wrong|a mistake|mistaken)"
    r"|i (?:have )?(?:revised|corrected|mistook|meant|confused|mixed|misread|misjudged)"
    r"|i (?:have )?made an? (?:error|mistake)|(?:that|this)(?: is|['’]s) not (?:right|correct)|labels (?:are|were)"
    r"|(?:do not|don['’]t) agree|disagree"
    r"|(?:verdict|answer) is not mine|redo|closer inspection|should['’]ve|tells? me|told me"
    r"|(?:swap|switch|invert|reverse) (?:a|b|the|them|this|it|labels)|revised?\s?:|(?:edit|update)\s?:"
    r"|should (?:be|have been|say|read)|i (?:would |want to |will )?change|take (?:that|it) back"
    r"|(?:quote\w*|above|json|block) (?:\w+ ){0,2}(?:from|by|in) (?:the )?(?:response|assistant|answer|output)"
    r"|i (?:will not|won['’]t|refuse)"
    r"|not my (?:final |own )?(?:verdict|answer)|(?:only|just|merely) an? (?:example|template|draft|guess)"
    r"|is what (?:the )?(?:response|assistant|answer|output)|nein|moment mal|korrektur|en fait|attendez|perdón"
    r"|corrección|excusez|pardon|désolée?|entschuldigung|на самом деле|постойте|исправл\w+|корректиров\w+|извините"
    r"|простите|maaf)\b|(?:\A|[.!?\n])\W*(?:no|nope|non|nein|нет|disregard)\s?[.,!]"
    r"|等等|更正|修正|抱歉|搞错|弄错|不对|實際上|实际上|実は|訂正|すみません|申し訳|정정|죄송|عذر|آسف|تصحيح",
    re.IGNORECASE,
)
# Before a verdict in JSON, on its line: it is not the judge's own.
NOT_OWN_VERDICT: Final = re.compile(
    r"(?:\A\W*(?:(?:the |json )?(?:format|template|schema|sample|placeholder|thoughts?|thinking)(?: process)?)"
    r"|(?:\b(?:draft|guess|wrong|incorrect|ignor\w+|refus\w+|reject\w*|(?:example|sample|hypothetical)(?: \w+)?|e\.g\."
    r"|thinking|thinks|placeholder|(?:initial|preliminary|tentative|provisional)(?: \w+)?"
    r"|first (?:impression|thought|take|glance))"
    r"|(?:\b(?:not|never)|n['’]t)(?:\s\w+){0,2})"
    r"|\b(?:says|said|claims|writes|wrote|contains|holds|ends (?:in|with)|wants|asks|tells|told|demands|dictates"
    r"|suggests|recommends|proposes|according to|inject\w*)\b"
    r"[^.!?\n:]{0,40}|\b(?:before|if(?! i (?:had|have) to (?:choose|pick|decide)))\b[^.!?\n:]{0,60})"
    r"[\s:,“\"'`(*_]{0,6}\Z|(?<!~)~~\Z",
    re.IGNORECASE,
)
# What a clause says that is for the side it names.
IN_FAVOUR: Final = re.compile(
    r"\b(?:better|best|w[io]n\w*|prefer\w*|final\w*|verdict|choice|choose|pick|superior|review|besser\w*|beste\w*"
    r"|meilleure?|mejor|migliore?|melhor|лучш\w*|beter|bättre|bedre|lepsz\w+|benar|c['’]est)\b|[=≫>]|更好|更优|较好|应选|应该|選"
    r"|良い|優れ|正し|나은|낫|정답|أفضل|الصحيح",
    re.IGNORECASE,
)
CLAUSE_BREAK: Final = re.compile(r"[.,;:!?\n→]|\b(?:because|since|while|whereas|although|though|as)\b", re.IGNORECASE)
# The merits for which a winner is named.
MERITS: Final = re.compile(
    r"\b(?:better|best|more|strong\w*|superior|clear\w*|prefer\w*|w[io]n\w*|accurate\w*|helpful|correct\w*|complete\w*"
    r"|detail\w*|concise\w*|good|great|thorough\w*|relevant|well|follows|answers|provides|gives|addresses|explains|offers"
    r"|besser\w*|mieux|meilleur\w*|mejor|migliore?|melhor|beter|bättre|bedre|lepsz\w+|лучш\w*|daha iyi|tốt hơn"
    r"|klar\w*|clai\w+|clar[oa]\w*|plus|más|più|mehr|vollständig\w*|genau\w*|ausführlich\w*|hilfreich\w*|préci\w+"
    r"|подробн\w*|точн\w*|полн\w*)\b|更|好|优|優|良|나은|더",
    re.IGNORECASE,
)
# Remarks that say nothing of the responses.
COURTESY: Final = re.compile(
    r"(?:thank(?:s| you)\b|(?:i )?hope (?:this|that|it) helps|let me know|please|feel free|cheers|done"
    r"|i (?:think|believe)\Z|(?:this|that|it) is (?:all|it)\Z|(?:(?:this|that|it) )?is (?:my|the) (?:final |own )?"
    r"(?:verdict|answer|decision|choice|judge?ment|conclusion|assessment|evaluation)\Z|end of \w+\Z"
    r"|(?:explanation|reasoning|rationale|justification)\Z"
    r"|(?:this|my) (?:decision|verdict|choice|judge?ment) (?:is|was) (?:based|made)\b"
    r"|confidence(?: \w+)?\s?[:=]?\s?(?:very |quite )?(?:high|medium|low|\d[\d.]*%?(?:/\d+)?)\Z"
    r"|das ist (?:alles|mein(?:e)? \w*\s?(?:urteil|antwort|entscheidung))\Z|这是我的最终\w{1,4}\Z|以上)",
    re.IGNORECASE,
)
# How a remark begins that speaks of the label before it.
VERDICT_REMARK: Final = re.compile(
    r"(?:(?:reason(?:ing|s)?|explanation|rationale|justification|why)\s?[:–-]\s?)?(?:(?:because|since|as|due to)\s)?"
    r"(?:it|its|this (?:is|response|answer|one|assistant|output)|more|much|clear\w*|slightly|better|most|the more)\b",
    re.IGNORECASE,
)
# The same, if a single response is judged.
WINNER_REMARK: Final = re.compile(
    r"(?:the|this) (?:response|answer|summary|output|text|assistant|model)\b", re.IGNORECASE
)
SENTENCE_END: Final = re.compile(r"[.!](?=\s|\Z)|[。！\n]|\s[–—-]\s|,\s(?=I think|I believe)")
# What is between a comparison and the side that it is made with.
COMPARISON_WORDS: Final = re.compile(
    rf"\b(?:than|over|beats?|(?:superior|preferable|compared) to|vs\.?|versus|als|чем)\s(?:the\s)?(?:{SIDE_WORDS}\s)?"
    r"[\"'(\[]?\Z",
    re.IGNORECASE,
)
# These may also lead on to a label.
COMPARISON_SIGNS: Final = re.compile(
    rf"(?:[>≫]\s?|\b(?:que|di|del|dan|än|enn?|niż)\s(?:(?:la|le|el|a|die|der)\s)?(?:{SIDE_WORDS}\s)?)\Z", re.IGNORECASE
)
SIDES_IN_WORDS: Final[dict[Choice, str]] = {
    Choice.A: r"first|former|1st|erste\w*|première?|primer\w*|prim[ao]|перв\w+",
    Choice.B: r"second\w*|latter|2nd|zweite\w*|deuxième|segund\w+|втор\w+",
    Choice.TIE: r"other|same|autre|andere\w*|otr[oa]|друг\w+",
}
SCRIPTS: Final = ("LATIN", "CYRILLIC", "CJK", "HIRAGANA", "KATAKANA", "HANGUL", "FULLWIDTH", "IDEOGRAPHIC")
MAX_REMARK_LENGTH: Final = 1500


def is_label_stated(before: str, behind: str) -> bool:
    """Whether nothing in the label's clause denies it or gives it to another side."""
    led, near = before.rstrip(LEAD_MARKS), before[-80:]
    if AGAINST.search(CLAUSE_END.split(led)[-1]) or REFUTATION.match(behind):
        return False
    if COMPARISON_WORDS.search(f"{led[-40:]} "):
        return False
    if ("," in near or "ccording" in near) and AT_FIRST.search(near):
        return False
    if led.endswith((*DENIAL_MARKS, "<!--")) or behind.lstrip(" *_`\"'”’)]").startswith(DENIAL_MARKS):
        return False
    quoted = QUOTED.search(before) if behind.lstrip(".*_` ").startswith(CLOSING_QUOTES) else None
    return quoted is None or is_label_stated(before[: quoted.start()], "")


def is_label_listed(before: str) -> bool:
    """Whether a bracketed label comes directly before, so that this one is one of several."""
    return bool(LISTED_LABEL.search(before[-20:]))


def is_harmless_remark(aspect: AspectSpec, label: str, remark: str) -> bool:
    """Whether a remark leaves the label valid: each sentence is a courtesy or supports the label."""
    parts = (part for part in SENTENCE_END.split(remark) if re.search(r"\w", part))
    sentences = [part.strip(IGNORED_MARKS + "-–—=") for part in parts]
    return not sentences or (
        is_neutral_remark(aspect, label, remark)
        and all(supports_label(aspect, label, sentence) for sentence in sentences)
    )


def supports_label(aspect: AspectSpec, label: str, sentence: str) -> bool:
    if COURTESY.match(sentence):
        return True
    if aspect.scale_min is not None:
        return bool(VERDICT_REMARK.match(sentence) or (WINNER_REMARK.match(sentence) and MERITS.search(sentence)))
    if label == aspect.label(Choice.TIE) and TIE_WORDS.search(sentence):
        return True
    names = (label.strip(IGNORED_MARKS), label_letter(aspect, label))
    is_about_it = VERDICT_REMARK.match(sentence) or any(names_side(sentence, name) for name in names)
    return bool(is_about_it and MERITS.search(sentence))


def is_neutral_remark(aspect: AspectSpec, label: str, remark: str) -> bool:
    """Whether the words express no doubt and name no other side.

    Words in a script whose doubts are not known here may express any.
    """
    if label == aspect.label(Choice.TIE):
        remark = TIE_WORDS.sub("", remark)
    if len(remark) > MAX_REMARK_LENGTH or DOUBTS.search(remark) or not uses_known_script(remark):
        return False
    if aspect.scale_min is not None:
        return not re.search(r"\d", remark)
    names = other_side_names(aspect, label).finditer(remark)
    return all(COMPARISON_WORDS.search(remark[max(name.start() - 40, 0) : name.start()]) for name in names)


def contradicts_label(aspect: AspectSpec, label: str, words: str) -> bool:
    """Whether a clause favours another side, or is another label alone."""
    if aspect.scale_min is not None:
        return False
    others = other_side_names(aspect, label)
    for clause in CLAUSE_BREAK.split(words):
        name = others.search(clause)
        if name is None:
            continue
        before = clause[: name.start()]
        if COMPARISON_WORDS.search(before) or COMPARISON_SIGNS.search(before):
            continue
        words = re.sub(rf"\A{SIDE_WORDS}\s", "", clause.strip(IGNORED_MARKS), count=1, flags=re.IGNORECASE)
        if IN_FAVOUR.search(clause) or name[0] == words:
            return True
    return False


def other_side_names(aspect: AspectSpec, label: str) -> re.Pattern[str]:
    """All other labels, and all words for other sides."""
    others = [aspect.label(choice) for choice in aspect.choices if aspect.label(choice) != label]
    chosen = choice_by_label(aspect, label)
    cores = [core for core in (other.strip(IGNORED_MARKS) for other in others) if core]
    cores += [str(side) for side in (Choice.A, Choice.B) if side != chosen]
    labels = "|".join(re.escape(core) if len(core) == 1 else f"(?i:{re.escape(core)})" for core in cores)
    sides = "|".join(words for side, words in SIDES_IN_WORDS.items() if side != chosen)
    return re.compile(rf"(?<![A-Za-z0-9'’])(?:{labels}|(?i:{sides}))(?![A-Za-z0-9])|第[一二]|[前后後]者")


def choice_by_label(aspect: AspectSpec, label: str) -> Choice:
    return next(choice for choice in aspect.choices if aspect.label(choice) == label)


def label_letter(aspect: AspectSpec, label: str) -> str:
    choice = choice_by_label(aspect, label)
    return str(choice) if choice in (Choice.A, Choice.B) else ""


def names_side(text: str, core: str) -> bool:
    return bool(core and re.search(rf"(?<![A-Za-z0-9'’]){re.escape(core)}(?![A-Za-z0-9])", text))


def uses_known_script(text: str) -> bool:
    letters = (character for character in set(text) if character.isalpha() and not character.isascii())
    return all(unicodedata.name(letter, "").startswith(SCRIPTS) for letter in letters)
