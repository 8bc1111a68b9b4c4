"""Generate small stories, a text of any size to train a tokenizer and a model on.

    python -m labs.stories --bytes 2000000 --seed 1 --out stories.txt

A small grammar makes the stories. A model can learn their rules: a hero keeps their name and
pronoun through the whole story, verbs agree with their subjects, the thing that was lost is found,
and sums are right. New names and words appear all the time; most are rare and some are frequent,
as in any text. Some stories contain other scripts, emoji, unusual white space and line ends of two
characters, because a tokenizer must handle all of them.
"""

# ruff: noqa: SIM905 - lists of words read better as text

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

SEPARATOR = "<|endoftext|>"
"""Follows every story, on its own text line."""

_PRONOUNS = ("she her her", "he him his", "they them their")
_KINDS = (
    "girl boy baker sailor badger owl rabbit miller painter clockmaker gardener robot giant wizard "
    "farmer teacher otter bear piper shepherd carpenter knight goblin nurse pilot diver"
).split()
_TRAITS = (
    "small brave shy clever sleepy kind curious tall quiet merry stubborn gentle lonely cheerful "
    "careful proud hungry young lively patient noisy polite restless thoughtful"
).split()
_COLOURS = "red blue green golden silver white black purple yellow brown grey pink".split()
_THINGS = (
    "key lantern shell button kite drum feather marble ribbon spoon hammer whistle basket candle "
    "coin mitten bottle map ladder bell acorn pebble scarf crown letter boat wheel mirror"
).split()
_PLACES = (
    "forest harbour village mill meadow castle valley market pond garden tower cave river "
    "bakery library mountain bridge lighthouse"
).split()
_WEATHER = (
    "The sun was warm.",
    "Rain fell all morning.",
    "A cold wind blew from the north.",
    "Snow lay on the roofs.",
    "Mist hung over the fields.",
    "There wasn't a cloud in the sky.",
    "Thunder rolled far away.",
    "The moon was already up.",
)
_SEARCHES = ("under", "behind", "inside", "beside", "on top of", "beneath")
_FURNITURE = (
    "bed table cupboard barrel stove bench haystack woodpile wagon well tree curtain".split()
)
_FEELINGS = ("glad", "sad", "tired", "surprised", "afraid", "happy", "cross", "proud", "worried")
_CRIES = ("Oh no!", "Look!", "Wait!", "Goodness!", "Hurry up!", "Well, well.", "Hmm...")
_MORALS = (
    "Whoever shares a loaf never eats alone.",
    "A slow step is still a step.",
    "It's easier to ask than to search.",
    "What is lost often lies close by.",
    "Friends carry half of what is heavy.",
    "You can't hurry bread, and you can't hurry a friend.",
)
_EMOJI = ("🦊", "🌙", "🍞", "⛵", "🎈", "👩‍🌾", "🐻‍❄️", "👍🏽", "❤️", "🇫🇷", "✨✨", "🕯️")
_SPACES = ("  ", "   ", "\t", "\u00a0", "\u2003", "\u3000", " \t ", "\u202f")
_STARTS = "b br c d dr f fl g gr h j k l m n p qu r s sh st t th tr v w y z".split()
_MIDDLES = "a e i o u ai ea oo ou".split()
_ENDS = "l n r s m nd ck th lla rin ssa ton by wick mer dle vin x nna".split()
_SCRIPTS = tuple(
    tuple(syllables.split())
    for syllables in (
        "ла ми на до ре сол ко ти ве жа ну бы щё рь ста зо",
        "λα μι νο σο ρε κα θε τη ψυ ων ξι φα δρο ές",
        "של בו מי לה רון תא גי נו חם דב",
        "سا لم نو ري با كت هل دو شم",
        "का मि नो रा ती सु हे ला पू जन",
        "か み の さく ら とり ゆ ね こ ほし ー",
        "山 月 水 木 日 花 犬 火 石 空 雨 星 魚 鳥 小 大 白 森",
        "가 나 달 별 물 꽃 새 산 비 눈 바 람",
        "მზე და წყა ლი ხე თო ვა ბი",
        "นก นํ้า ดา ว ฝน ไม้ ปลา ใบ",
        "é tê ça où ñu ü ß ø å ï œ zł ğ",
    )
)


class _Urn:
    """A source of words: new words at a steady rate, and repetitions otherwise (Simon 1955).

    The frequencies follow Zipf's law, and new words never end.
    """

    def __init__(self, draw: Callable[[], float], make: Callable[[], str], rate: float) -> None:
        self._draw, self._make, self._rate = draw, make, rate
        self._given: list[str] = []

    def take(self) -> str:
        """Return a new word, or repeat an earlier one."""
        given, number = self._given, len(self._given)
        fresh = not number or self._draw() < self._rate
        given.append(self._make() if fresh else given[int(self._draw() * number)])
        return given[-1]


@dataclass(frozen=True)
class _Cast:
    """The names, pronouns and things that stay the same through a story."""

    hero: str
    friend: str
    they: str
    them: str
    their: str
    thing: str
    craft: str
    place: str

    @property
    def They(self) -> str:  # noqa: N802 - it begins a sentence
        """The hero's pronoun with a capital letter."""
        return self.they.capitalize()

    @property
    def was(self) -> str:
        """The verb that agrees with the pronoun."""
        return "were" if self.they == "they" else "was"


class _Teller:
    """A generator of stories, one after another."""

    def __init__(self, seed: int) -> None:
        self._draw = draw = random.Random(seed).random
        self._names = _Urn(draw, lambda: self._invent().capitalize(), 0.3)
        self._lands = _Urn(draw, lambda: self._invent().capitalize(), 0.3)
        self._words = _Urn(draw, self._invent, 0.35)
        self._foreign = [_Urn(draw, partial(self._join, script), 0.5) for script in _SCRIPTS]

    def story(self) -> str:
        """Return the next story; its line ends have one character, or sometimes two."""
        cast = self._cast()
        paragraphs = [
            self._beginning(cast),
            self._loss(cast),
            self._episode(cast),
            self._episode(cast),
            self._ending(cast),
        ]
        if self._draw() < 0.6:
            paragraphs.insert(1 + int(4 * self._draw()), self._oddity(cast))
        story = ("\n\n" if self._draw() < 0.7 else "\n").join(paragraphs) + "\n"
        return story.replace("\n", "\r\n") if self._draw() < 0.04 else story

    def _cast(self) -> _Cast:
        hero = friend = self._names.take()
        while friend == hero:
            friend = self._names.take()
        they, them, their = self._one(_PRONOUNS).split()
        thing = f"{self._one(_COLOURS)} {self._one(_THINGS)}"
        craft, place = self._words.take(), self._one(_PLACES)
        return _Cast(hero, friend, they, them, their, thing, craft, place)

    def _beginning(self, c: _Cast) -> str:
        trait, kind, land = self._one(_TRAITS), self._one(_KINDS), self._lands.take()
        first = self._one(
            (
                f"Once upon a time there was a {trait} {kind} called {c.hero}.",
                f"By a {c.place} near {land} lived a {trait} {kind}. The name was {c.hero}.",
                f"{c.hero} was a {trait} {kind} from {land}.",
                f"Long ago, in the land of {land}, a {trait} {kind}, {c.hero}, had a {c.place}.",
            )
        )
        dated = f" It was the year {1000 + self._below(900)}." if self._draw() < 0.2 else ""
        return f"{first}{dated} {self._one(_WEATHER)}"

    def _loss(self, c: _Cast) -> str:
        return self._one(
            (
                f'"I can\'t find my {c.thing}!" said {c.hero}. {c.They} {c.was} '
                f"{self._one(_FEELINGS)}.",
                f'One day {c.hero} lost {c.their} {c.thing}. "It\'s gone," {c.they} said. '
                f'"I\'ve looked everywhere."',
                f"Nothing was dearer to {c.hero} than {c.their} {c.thing}. But that morning it "
                "wasn't there.",
                f'"Where\'s my {c.thing}?" asked {c.hero}. "We don\'t know," said the others, '
                f'"but we\'d like to help."',
            )
        )

    def _episode(self, c: _Cast) -> str:
        scenes = (self._search, self._count, self._shop, self._talk, self._strangers, self._walk)
        first = self._below(len(scenes))
        chosen = (scenes[(first + 5 * i) % len(scenes)] for i in range(2 + self._below(2)))
        return " ".join(scene(c) for scene in chosen)

    def _search(self, c: _Cast) -> str:
        place = f"{self._one(_SEARCHES)} the {self._one(_FURNITURE)}"
        return f"{c.hero} looked {place}. There was a {self._words.take()}, but no {c.thing}."

    def _count(self, c: _Cast) -> str:
        first, second, things = 2 + self._below(30), 2 + self._below(30), self._one(_THINGS)
        return f"{c.They} counted {first} {things}s and {second} more: {first + second} in all."

    def _shop(self, c: _Cast) -> str:
        price, short = 9 + int(9 * 10 ** (3 * self._draw())), 1 + self._below(8)
        return (
            f"The {self._words.take()} cost {price} pennies, and {c.hero} had only "
            f"{price - short}. {c.friend} gave {c.them} the other {short}."
        )

    def _talk(self, c: _Cast) -> str:
        return self._one(
            (
                f"{c.friend} came by with a {c.craft}. \"{self._one(_CRIES)} We'll look "
                f'together," {c.friend} said.',
                f'"Have you asked the {self._one(_KINDS)}?" said {c.friend}. "I haven\'t," said '
                f"{c.hero}. \"Then let's go. It isn't far.\"",
                f'"You\'re {self._one(_FEELINGS)}," said {c.friend}. "I\'d be too, without my '
                f"{c.thing}. They're all so {self._one(_FEELINGS)} for you.\"",
            )
        )

    def _strangers(self, c: _Cast) -> str:
        return (
            f"A {self._one(_TRAITS)} {self._one(_KINDS)} was mending a {self._words.take()}. "
            f"Two {self._one(_TRAITS)} {self._one(_KINDS)}s were watching {c.them}."
        )

    def _walk(self, c: _Cast) -> str:
        return (
            f"{c.hero}'s {c.craft} was heavier than {c.friend}'s. Still {c.they} carried it "
            f"{2 + self._below(9)} miles, past the {self._one(_PLACES)} of {self._lands.take()}."
        )

    def _ending(self, c: _Cast) -> str:
        place = f"{self._one(_SEARCHES)} the {self._one(_FURNITURE)}"
        last = self._one(
            (
                f"At last {c.hero} found the {c.thing} {place}. {c.They} {c.was} very happy, and "
                f"thanked {c.friend}.",
                f'"Here it is!" cried {c.friend}. The {c.thing} had been {place} all the time. '
                f"{c.hero} laughed until {c.they} cried.",
                f"When {c.hero} came home to the {c.place}, {c.their} {c.thing} lay {place}. "
                f"{c.hero} and {c.friend} are friends to this day.",
            )
        )
        return f"{last} {self._one(_MORALS)}"

    def _oddity(self, c: _Cast) -> str:
        """Return a paragraph that is hard for a tokenizer, with emoji, code or another script."""
        gap, kind = self._one(_SPACES), self._below(8)
        if kind == 0:
            return f"{c.hero} wrote back {self._one(_EMOJI)}{gap}{self._one(_EMOJI)} and smiled."
        if kind == 1:
            return f"{gap}tick{gap}tock{gap}tick, went the clock.  "
        if kind == 2:
            hour, minute, metres = (
                self._below(24),
                self._below(60),
                int(10 ** (1 + 4 * self._draw())),
            )
            return f"It was {hour}:{minute:02d}, and {metres} m ({metres / 1000:.3f} km) to go..."
        if kind == 3:
            word = self._words.take()
            return f'    for {word} in every_{word}:\n\tprint("{c.hero}", {self._below(100)})'
        words = self._foreign[self._below(len(self._foreign))]
        written = " ".join(words.take() for _ in range(3 + self._below(4)))
        return f"On the {c.place} stood: «{written}». {c.hero} couldn't read it."

    def _invent(self) -> str:
        """Return a made-up word of two to four syllables."""
        count = 1 + int(2.4 * self._draw())
        syllables = [self._one(_STARTS) + self._one(_MIDDLES) for _ in range(count)]
        return "".join(syllables) + self._one(_ENDS)

    def _join(self, syllables: Sequence[str]) -> str:
        return "".join(self._one(syllables) for _ in range(1 + self._below(4)))

    def _one(self, items: Sequence[str]) -> str:
        return items[int(len(items) * self._draw())]

    def _below(self, number: int) -> int:
        return int(number * self._draw())


def stories(seed: int = 0) -> Iterator[str]:
    """Yield stories without end, each with a final line end; a seed gives the same stories."""
    teller = _Teller(seed)
    while True:
        yield teller.story()


def text_of(size: int, seed: int = 0) -> Iterator[str]:
    """Yield stories with separators until they have at least `size` bytes in UTF-8."""
    for story in stories(seed):
        if size <= 0:
            return
        document = f"{story}{SEPARATOR}\n"
        size -= len(document.encode())
        yield document


def main() -> None:
    """Write stories to a file or to the standard output."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--bytes", type=int, default=2_000_000, help="minimum size of the text")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="the file to write (default: standard output)")
    chosen = parser.parse_args()
    documents = text_of(chosen.bytes, chosen.seed)
    if chosen.out is None:
        for document in documents:
            sys.stdout.buffer.write(document.encode())
        return
    with open(chosen.out, "w", encoding="utf-8", newline="") as file:
        file.writelines(documents)


if __name__ == "__main__":
    main()
