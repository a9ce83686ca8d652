"""Texts of several scripts, made from a few sentences, with the tokens that real tokenizers count in them."""

import base64
import hashlib

SAMPLE_SENTENCES = {
    "English": (
        "The second answer explains why the bridge was closed, and it names the engineer who asked for the inspection.",
        "Nobody at the meeting had read the whole report, so the vote was put off until the following Tuesday.",
        "If you plant the beans too early, a late frost may kill them; wait until the soil feels warm to the hand.",
        "Her grandfather's clock had stopped at twenty past four, which everyone in the village took for a sign.",
        "A good summary leaves out most of what happened and keeps the reason why it mattered.",
        "In practice, the committee's recommendations were seldom implemented without considerable modification.",
    ),
    "Chinese": (
        "第二个回答说明了桥梁关闭的原因，并且提到了要求检查的工程师。",
        "会议上没有人读完整份报告，所以表决推迟到了下个星期二。",
        "如果豆子种得太早，晚霜可能会把它们冻死；要等到土壤摸起来暖和的时候再种。",
        "好的摘要会省略大部分经过，只保留事情为什么重要。",
        "在实践中，委员会的建议很少能够不经修改就得到执行，因此需要继续讨论。",
        "爷爷的钟停在了四点二十分，村里的人都认为这是一个预兆。",
    ),
    "Japanese": (
        "二番目の回答は、橋が閉鎖された理由を説明し、点検を求めた技術者の名前も挙げています。",
        "会議に出た人は誰も報告書を最後まで読んでいなかったので、採決は次の火曜日に延期されました。",
        "豆を早くまきすぎると、遅い霜で枯れることがあります。土が暖かくなるまで待ちましょう。",
        "良い要約は、起きたことのほとんどを省き、なぜそれが大切だったのかを残します。",
    ),
    "Korean": (
        "두 번째 답변은 다리가 폐쇄된 이유를 설명하고 점검을 요청한 기술자의 이름도 밝힙니다.",
        "회의에 참석한 사람 가운데 보고서를 끝까지 읽은 사람이 없어서 표결은 다음 주 화요일로 미루어졌습니다.",
        "콩을 너무 일찍 심으면 늦서리에 얼어 죽을 수 있으니 흙이 따뜻해질 때까지 기다리세요.",
        "좋은 요약은 일어난 일의 대부분을 빼고 그것이 왜 중요했는지를 남깁니다.",
    ),
    "Russian": (
        "Второй ответ объясняет, почему мост был закрыт, и называет инженера, который потребовал проверки.",
        "Никто на собрании не прочитал отчёт целиком, поэтому голосование отложили до следующего вторника.",
        "Если посадить бобы слишком рано, их может погубить поздний заморозок; подождите, пока земля прогреется.",
        "Хорошее изложение опускает почти всё, что случилось, и сохраняет то, почему это было важно.",
    ),
    "Arabic": (
        "توضح الإجابة الثانية سبب إغلاق الجسر وتذكر اسم المهندس الذي طلب الفحص.",
        "لم يقرأ أحد في الاجتماع التقرير كله، ولذلك تأجل التصويت إلى يوم الثلاثاء التالي.",
        "إذا زرعت الفول مبكرا جدا فقد يقتله الصقيع المتأخر؛ انتظر حتى تدفأ التربة.",
        "الملخص الجيد يترك معظم ما حدث ويحتفظ بسبب أهميته.",
    ),
    "Hindi": (
        "दूसरा उत्तर बताता है कि पुल क्यों बंद किया गया और उस अभियंता का नाम देता है जिसने जाँच की माँग की थी।",
        "बैठक में किसी ने पूरी रिपोर्ट नहीं पढ़ी थी, इसलिए मतदान अगले मंगलवार तक टाल दिया गया।",
        "अगर आप फलियाँ बहुत जल्दी बोते हैं तो देर का पाला उन्हें मार सकता है; मिट्टी के गर्म होने तक रुकें।",
        "अच्छा सारांश अधिकतर घटनाओं को छोड़ देता है और यह रखता है कि वे क्यों महत्वपूर्ण थीं।",
    ),
    "German": (
        "Die zweite Antwort erklärt, warum die Brücke gesperrt wurde, und nennt die Ingenieurin, "
        "die eine Prüfung verlangte.",
        "Niemand in der Sitzung hatte den ganzen Bericht gelesen, deshalb wurde die Abstimmung "
        "auf Dienstag verschoben.",
        "Wer Bohnen zu früh sät, verliert sie vielleicht durch Spätfröste; man wartet besser, bis der Boden warm ist.",
        "Eine gute Zusammenfassung lässt das meiste weg und behält, weshalb es wichtig war.",
    ),
    "code": (
        "def mean_of(values: Sequence[float]) -> float:\n    if not values:\n        raise ValueError('no values')\n"
        "    return sum(values) / len(values)\n",
        "for (let index = 0; index < rows.length; index += 1) {\n    const row = rows[index];\n"
        "    if (row.isHidden) {\n        continue;\n    }\n"
        "    totals.set(row.key, (totals.get(row.key) ?? 0) + row.amount);\n}\n",
        "SELECT judge_id, count(*) AS answered\nFROM evaluations_call\nWHERE state = 'answered' AND run_id = 17\n"
        "GROUP BY judge_id\nORDER BY answered DESC;\n",
        "# ------------------------------------------------------------\nclass ResponseParser(BaseParser):\n"
        "    MAX_DEPTH = 32\n\n    def parseObject(self, text):\n"
        "        return self._walk(json.loads(text), depth=0)\n",
    ),
}
NUMBER_KINDS = ("table", "JSON", "numbers", "base64")


def text_of_kind(kind: str, parts: int, first: int = 0) -> str:
    """``parts`` sentences, rows or lines of this kind, from the ``first`` on."""
    if kind not in NUMBER_KINDS:
        known = SAMPLE_SENTENCES[kind]
        # Seven is prime to the numbers of sentences.
        return " ".join(known[(first + 7 * number) % len(known)] for number in range(parts))
    digests = [hashlib.sha256(f"{kind} {first + number}".encode()).digest() for number in range(parts)]
    return "\n".join(line_of_kind(kind, digest) for digest in digests)


def line_of_kind(kind: str, digest: bytes) -> str:
    amount, share = int.from_bytes(digest[:3], "big"), digest[3] / 255
    word, is_final = ("high", "low", "none", "mixed")[digest[4] % 4], str(digest[5] % 2 == 0).lower()
    return {
        "table": f"| {word:<12} | {amount:>10} | {share:>8.2f} | {'yes' if digest[5] % 2 else 'no':<10} |",
        "JSON": f'  {{"id": {amount}, "level": "{word}", "share": {share:.3f}, "is_final": {is_final}}},',
        "numbers": f"2024-{1 + digest[6] % 12:02}-{1 + digest[7] % 28:02},{amount},{share:.4f},{digest[8]}",
        "base64": base64.b64encode(digest + digest[:13]).decode(),
    }[kind]


# What the vocabularies of these families count: GPT-4o, Qwen 3, Llama 3, DeepSeek 4, Mistral 7B, SmolLM 2.
TOKENIZER_FAMILIES = ("GPT-4o", "Qwen", "Llama", "DeepSeek", "Mistral", "SmolLM")
TOKEN_COUNTS = {
    ("English", 40, 0): (802, 802, 802, 802, 834, 802),
    ("English", 90, 3): (1_785, 1_785, 1_785, 1_785, 1_860, 1_785),
    ("English", 150, 5): (2_975, 2_975, 2_975, 2_975, 3_100, 2_975),
    ("Chinese", 40, 0): (887, 790, 912, 699, 1_377, 2_128),
    ("Chinese", 90, 3): (1_994, 1_782, 2_054, 1_574, 3_105, 4_784),
    ("Chinese", 150, 5): (3_324, 2_972, 3_424, 2_624, 5_175, 7_975),
    ("Japanese", 40, 0): (1_390, 1_159, 1_240, 1_139, 1_970, 3_079),
    ("Japanese", 90, 3): (3_126, 2_603, 2_790, 2_561, 4_428, 6_921),
    ("Japanese", 150, 5): (5_213, 4_353, 4_649, 4_277, 7_392, 11_558),
    ("Korean", 40, 0): (1_150, 1_360, 1_200, 1_380, 2_290, 4_020),
    ("Korean", 90, 3): (2_588, 3_059, 2_700, 3_104, 5_148, 9_026),
    ("Korean", 150, 5): (4_312, 5_101, 4_500, 5_177, 8_592, 15_094),
    ("Russian", 40, 0): (1_031, 1_240, 1_120, 1_150, 1_580, 2_939),
    ("Russian", 90, 3): (2_322, 2_792, 2_520, 2_589, 3_559, 6_617),
    ("Russian", 150, 5): (3_860, 4_647, 4_201, 4_311, 5_921, 11_023),
    ("Arabic", 40, 0): (840, 1_030, 1_020, 990, 2_390, 2_649),
    ("Arabic", 90, 3): (1_894, 2_317, 2_296, 2_226, 5_368, 5_950),
    ("Arabic", 150, 5): (3_147, 3_864, 3_825, 3_715, 8_972, 9_949),
    ("Hindi", 40, 0): (1_012, 3_519, 1_870, 2_120, 3_940, 4_139),
    ("Hindi", 90, 3): (2_275, 7_917, 4_206, 4_769, 8_864, 9_315),
    ("Hindi", 150, 5): (3_789, 13_201, 7_015, 7_951, 14_776, 15_525),
    ("German", 40, 0): (930, 1_220, 1_240, 1_140, 1_410, 1_650),
    ("German", 90, 3): (2_092, 2_740, 2_785, 2_561, 3_168, 3_706),
    ("German", 150, 5): (3_489, 4_580, 4_655, 4_280, 5_292, 6_194),
    ("code", 40, 0): (1_680, 1_660, 1_640, 1_720, 2_240, 2_060),
    ("code", 90, 3): (3_769, 3_727, 3_681, 3_861, 5_031, 4_625),
    ("code", 150, 5): (6_311, 6_233, 6_159, 6_459, 8_409, 7_735),
    ("table", 40, 0): (753, 969, 753, 673, 928, 928),
    ("table", 90, 3): (1_702, 2_192, 1_702, 1_522, 2_101, 2_101),
    ("table", 150, 5): (2_838, 3_648, 2_838, 2_538, 3_497, 3_497),
    ("JSON", 40, 0): (1_154, 1_410, 1_154, 1_194, 1_498, 1_450),
    ("JSON", 90, 3): (2_602, 3_177, 2_602, 2_692, 3_380, 3_267),
    ("JSON", 150, 5): (4_341, 5_294, 4_341, 4_491, 5_633, 5_444),
    ("numbers", 40, 0): (718, 1_195, 718, 718, 1_196, 1_195),
    ("numbers", 90, 3): (1_615, 2_688, 1_615, 1_615, 2_689, 2_688),
    ("numbers", 150, 5): (2_693, 4_484, 2_693, 2_693, 4_485, 4_484),
    ("base64", 40, 0): (1_675, 1_824, 1_765, 1_726, 2_008, 1_980),
    ("base64", 90, 3): (3_784, 4_098, 3_968, 3_876, 4_492, 4_437),
    ("base64", 150, 5): (6_306, 6_850, 6_630, 6_458, 7_483, 7_421),
}
