"""The embedded vocabulary: some 1,800 tokens, made by code, for demos and tests without a file.

In: nothing. Out: the tokens' bytes in id order, and the special tokens.
Invariant: ids 0 to 255 are the single bytes; then come the pieces, each once, in the order of the lists below; the
special tokens are last. The pieces are meant to be awkward: tokens that straddle markers, quotes, tags, numbers and
characters of several bytes, as those of real vocabularies do.
Cost: one millisecond.
"""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["SPECIAL", "tokens"]

SPECIAL = (
    "<pad>", "<eos>", "<bos>", "<|think|>", "<|tool>", "<tool|>", "<|tool_call>", "<tool_call|>", "<|tool_response>",
    "<tool_response|>", '<|"|>', "<|channel>", "<channel|>", "<|turn>", "<turn|>", "<|start|>", "<|message|>",
    "<|eom|>", "<|eot|>", "<|begin_of_text|>", "<|end_of_text|>",
)  # fmt: skip

_WORDS = """
a able about above act action active add address after again age air all also always am amount an and any api app are
area around array as ask at available away back bad bar base be because been before being below best better between
big bit blue board body book boolean both box bring build but by call can car card care case cat cell center change
chat check child city class clear close code color come command company content context control copy could count
country create current cut data date day days default delete description did different do document does done double
down draft due each early east edit either else email empty end enough enum error even event every example fact false
family far fast few field file files filter final find first flag float folder follow food for form format found free
friend from full function get give go good got great green group had half hand has have he head header help her here
high him his hold home hot hour hours house how id if image in index info input int integer into is issue it item
items its job join json just keep key keys kind know label language large last late later latitude learn left length
less let letter level life light like limit line link list little live load local location long longitude look low
made mail main make man many map match max may me mean message method min minute minutes miss mode model money month
more most move much must my name near need never new news next nice night no node none north not note now null number
object of off old on once one only open option or order other our out over own page paper park part pass path people
person phone place plan play point post power present press price print priority problem process project public query
question queue range rate read real red reminder remove reply report request response rest result return review right
road role room run said same save say schedule schema school score search second see select self send sent sentence
service set she short should show side simple since size small so some son sort south start state status step still
stop store story street string strong structure such sum summary sun sure system table tag take talk task team tell
test text than thank that the their them then there these they thing think this those thought three through time
timeout timezone title to today together token tomorrow too tool tools top total town travel tree true try turn two
type under unit units until up update url us use user value values very view visit voice wait walk want was watch
water way we weather web week well went were west what when where which while white who why will wind with within
without woman word work world would write year yellow yes yesterday yet you your zone
"""
_ENDINGS = (
    "ed", "er", "es", "ing", "ion", "ions", "ity", "ive", "ize", "less", "ly", "ment", "ness", "ous", "able", "ance",
    "ence", "est", "ful", "ish", "ism", "ist", "th", "ur", "us", "un", "re", "pre", "pro", "con", "com", "dis", "ex",
    "over", "sub", "inter", "tr", "st", "ch", "sh", "wh", "qu", "ck", "ll", "ss", "tt", "oo", "ee", "ea", "ai", "ou",
    "an", "en", "al", "ar", "el", "le", "ra", "ri", "ro", "la", "li", "lo", "na", "ne", "ni", "no", "ta", "te", "ti",
)  # fmt: skip
_NAMES = (
    "London", "Paris", "Berlin", "Tokyo", "Madrid", "Rome", "New", " York", "San", "Monday", "Friday", "January",
    "March", "Alice", "Bob", "get_", "set_", "list_", "create_", "update_", "delete_", "search_", "_id", "_name",
    "_time", "_at", "_count", "_type", "_list", "get_weather", "send_email", "camelCase", "ISO", "UTC", "USD", "EUR",
    "http", "https", "://", "www.", ".com", ".org", ".json", ".py", ".txt", "def ", "class ", "import ", "return ",
    "function ", "const ",
)  # fmt: skip
_MARKS = (
    '":"', '":', '": "', '": ', '", "', '","', '",', '"}', '"},', '"}}', '"]', '"],', '["', '[{', '{"', '{"a', '}}',
    '}]', '},', '}, {', '},{"', '[]', '{}', '[[', ']]', '],', '],[', '"""', "''", '\\"', '\\n', '\\u', '\\\\', '\\t',
    ' "', ' {', ' [', '{ ', ', ', ': ', '; ', '. ', '? ', '! ', ' - ', '--', '---', '...', '==', '!=', '<=', '>=',
    '=>', '->', '&&', '||', '::', '//', '/*', '*/', '**', '##', '`', '```', '()', '(', ')', ');', '("', '")', ',\n',
    '.\n', ':\n', '{\n', '}\n', ':[', ':{', ':-', ',-', '0.', '.0', '.5', '-1', '1e', 'e-', 'E+', ':true', ':false',
    ':null', ':"', ',"', "'s", "n't",
)  # fmt: skip
_TAGS = (
    '</', '/>', '">', '="', ' ="', '<!', '<?', '><', '></', '">\n', '>\n', '>\n<', '<a', '</a', '<div', '</div>',
    '<p>', '</p>', '<br', '<b>', ' name="', 'name="', '<tag', '<a:', '</a:', ':parameter', ':parameter>',
    ':parameter name="', 'parameter', 'parameter name', 'invoke', ':invoke', ' invoke', ':invoke name="',
    ':invoke>\n', 'function_calls', ':function_calls>\n', '_calls', '_calls>', 'call', 'call:', ':call', ' call:',
    'thought', 'thought\n', 'assistant', ' assistant', ' to', ' to=', 'to=', '=self', '=user', 'final', 'analysis',
    '<|', '|>', '<|"', '"|>', '|', '<|tool', 'tool_', '_call', '_call|>', '<|ch', 'annel', '<|s', 'tart|>',
)  # fmt: skip
_CHARACTERS = (
    "éèêëàâäáãåçíìîïñóòôöõúùûüýßæøœÉÀÄÖÜ¿¡£€¥§°µ·«»“”‘’–—…•→←≤≥≠×÷"
    "абвгдежзиклмнопрстуфхцчшыьэюяАВКМСабדהאלמ"
    "中国人大日本語的了是我有在这あいうえおのアイウ한국어ไทยनमस्ते🙂😀🎉🚀❤👍🏽"
)


def _pieces() -> Iterator[bytes]:
    words = _WORDS.split()
    for word in words:
        yield word.encode()
        yield b" " + word.encode()
    for word in words[::9]:
        yield word.capitalize().encode()
    for piece in (*_ENDINGS, *_NAMES, *_MARKS, *_TAGS, *_CHARACTERS):
        yield piece.encode("utf-8")
    for character in "é中🙂日м":  # halves of characters, and characters with what often stands before them
        encoded = character.encode("utf-8")
        yield encoded[:2]
        yield encoded[1:]
        yield b" " + encoded
        yield b'"' + encoded
    for number in (*range(10, 100, 3), *range(100, 1000, 37), 1000, 2000, 2024, 2025):
        yield str(number).encode()
    for length in (2, 3, 4, 6, 8, 12, 16):
        yield b" " * length
        yield b"\n" + b" " * length
    yield from (b"\n\n", b"\n\n\n", b"\r\n", b"\t\t", b" \n", b"\n\t")


def tokens() -> tuple[list[bytes], dict[str, int]]:
    """The bytes of every id, and the special tokens' ids."""
    found = dict.fromkeys(bytes([value]) for value in range(256))
    found |= dict.fromkeys(_pieces())
    ordinary = list(found)
    special = {text: len(ordinary) + index for index, text in enumerate(SPECIAL)}
    return ordinary, special
