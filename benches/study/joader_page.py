"""joader.md: what jobs that share their reading read, by sampler, cache policy and size of the cache."""

from math import log

from joader_plots import COURSES, FOUR_JOBS, POLICIES, SAMPLERS, TWO_JOBS
from markdown import figure, table

N = 10_000

INTRODUCTION = """How often elements are read when several jobs share their reading: JOADER's dependent sampling,
compared with each job on its own, one permutation that all jobs walk along, and jobs that follow each other, with
caches of all sizes and six policies. These are simulations of Table 1 and Figures 2 to 5 of the appendix of Xie et al.,
"A Deep Learning Dataloader with Shared Data Preparation" (NeurIPS 2022), by `python/crates/joader`. Nothing of a server
is in them, and no time.
"""

COUNTING = """In a round each job that is not done draws one element. An element that several jobs draw in a round is
asked for once; a *miss* is a request for what is not cached, that is, a read. Figures are means over {seeds} seeds,
with their standard deviation, where that is not nearly 0. The fewest misses that there can be in an epoch are the
elements that any job wants, the most are all draws.

- `dependent`: Algorithms 1 and 2. `by vertex`: the same, but jobs that come upon the same vertex of the sampling tree
  share the element, too (appendix C can be read so).
- `independent`: every job draws by itself.
- `walk`: one random permutation. Who begins an epoch begins where the job with the longest way to go is.
- `follow`: a job draws what was drawn last of all it still needs, among the fifth of all elements that were drawn
  last. Else it draws, of those that come next in a random order of its own, one that most jobs need that have nothing
  to follow, and of these one that the fewest others need.
- `RefCnt` drops what the fewest jobs have still to draw in their epochs, `LRU` what was used longest ago, `FIFO` what
  was read longest ago, `random` anything; `MinIO` (CoorDL) never drops; `optimum` (Belady) knows the future, and may
  leave what it has read out of the cache.

"""

TWO = """Both jobs begin together, and draw one epoch. *intersection 75%*: both want 10,000 elements, 7,500 of them
the same. *size 75%*: one wants 7,500 of the other's 10,000. The grey line is the fewest misses.

"""

CLOSED = """With one slot, and the closed form of dependent sampling: |D1 u D2| for equal sizes, which always meet,
and N + (N - n) ln(N / (N - n)) for n of N.

"""

FOUR = """Four jobs, dependent sampling. *4 samples*: each wants 10,000 of 13,333, chosen at random. *4 sizes*:
10,000, 7,500, 5,000 and 2,500, each part of the one before.

"""

COURSES_TEXT = """Six courses on a table of 10,000 elements, of which 1,000 are cached by `RefCnt`. *4 equal jobs*:
two epochs, begun together. *4 staggered jobs* (Figure 3a): three epochs each, begun a quarter of an epoch after one
another. *speeds 1:2:4* and *5 speeds* (12:9:6:4:3, Figure 2): four epochs of the fastest. *4 filters*: two epochs of
jobs that leave another tenth out each. *4 by buffers*: two epochs of jobs that draw a tenth at a stretch and then rest
as long, since they learn from it; each begins when the one before has seven tenths of its first buffer. Figure 3b is
the table of intersections above: the more two jobs have in common, the fewer reads there are per draw.

"""

BLOCKS = """What the database shares is blocks. The same courses on a table of 1,000 blocks: reads as multiples of the
table, with that part of it cached by `RefCnt`. *Alone* is what the jobs draw together. *Once* is what is read if
everything that jobs want in the same stretch of time is read once for all of them: as often as the fastest job needs
it, and while any job runs.

"""

VERDICT = """Blocks of tables are drawn by following (`shared_scan => true`). It reads least, or barely more, in each
course:

- Jobs of one speed that began at different moments: following reads {staggered_follow:.2f} times the table with a
  hundredth of it cached, as the walk does ({staggered_walk:.2f}); dependent sampling {staggered:.2f}, and
  {staggered_tenth:.2f} with a tenth. A job in mid-epoch needs the half that it has not seen, and one that begins
  must draw from all, to be uniform whatever the other has: two jobs meet with |I| / max(|D1|, |D2|) at most.
- Jobs of different speeds: who walks at another speed is elsewhere, and meets no one: {speeds_walk:.2f} times the
  table, where jobs draw {speeds_alone:.2f} together. Dependent sampling reads {speeds:.2f}, following
  {speeds_follow:.2f}: the fast job draws for a slow one what that still needs.
- Jobs with different filters drift apart on a walk, by few steps: {filters_walk:.2f} times the table; dependent
  sampling {filters:.2f}, following {filters_follow:.2f}.
- Jobs that read a buffer at a time need a cache for it. With a tenth of the table, which is a buffer, the walk reads
  {buffers_walk:.2f} times the table, dependent sampling {buffers:.2f}, following {buffers_follow:.2f}.

What following gives up:

- Orders hang together. With dependent sampling a job's order is uniform *given* what the others draw. With following it
  is uniform by itself, where a job wants everything, or a part that was drawn at random (blocks of a table are such
  elements): every order of its elements is equally likely, but jobs that run together have nearly the same one. What
  that does to models that are trained so is measured by `make study ONLY=share`.
- Where a job wants certain elements, those that others want, too, come sooner. With dependent sampling they do not.
- On a walk the next epoch has the same order again, as long as anybody is on it. Following draws again, but from what
  the others still need: epochs of jobs that began at different moments hang together, too.

"""

AGAIN = """`make study ONLY=joader` simulates everything again and writes this page; nothing in it is written by hand.
All counts are in `target/results/raw/joader.csv` afterwards. In `python`,
`cargo run --release -p joader --example simulate` draws any other case, from a log of events.
"""


def page_of(counts):
    """Title, introduction and sections."""
    sections = [
        ("How it is counted", COUNTING.format(seeds=counts.seeds)),
        ("Two jobs", two_jobs(counts)),
        ("Four jobs and six policies", four_jobs(counts)),
        ("What the paper says", claims(counts)),
        ("Moments, speeds and filters", courses(counts)),
        ("Blocks of a table", blocks(counts)),
        ("Make it again", AGAIN),
    ]
    return "Many jobs, one read", INTRODUCTION, sections


def closed_form(scene):
    kind, part = scene.split()
    part = int(part.rstrip("%")) / 100
    if kind == "intersection":
        return N * (2 - part)
    return N + N * (1 - part) * log(1 / (1 - part))


def two_jobs(counts):
    columns = {"case": "scene", "fewest": lambda row: f"{row['union']:.0f}", "most": lambda row: f"{row['draws']:.0f}"}
    columns["closed form"] = lambda row: f"{closed_form(row['scene']):.0f}"
    columns |= {name: (lambda row, name=name: row[name]) for name in SAMPLERS}
    rows = []
    for scene in TWO_JOBS:
        row = {"scene": scene, "union": counts.union(scene), "draws": counts.draws(scene)}
        rows.append(row | {name: counts.shown(scene, name, "LRU", 1) for name in SAMPLERS})
    caption = "misses of two jobs by size of the cache, for five samplers with LRU"
    return TWO + figure("joader_samplers.svg", caption) + CLOSED + table(columns, rows)


def four_jobs(counts):
    text = FOUR + figure("joader_policies.svg", "misses of four jobs by size of the cache, for six policies")
    for scene in FOUR_JOBS:
        text += f"{scene}: {counts.union(scene):.0f} at least, {counts.draws(scene):.0f} at most.\n\n"
        columns = {"elements cached": "size"} | {name: (lambda row, name=name: row[name]) for name in POLICIES}
        columns["independent, LRU"] = "independent"
        columns["walk, LRU"] = "walk"
        rows = []
        for size in (1, 1000, 2000, 4000, 6000, 8000, 10_000):
            row = {name: counts.shown(scene, "dependent", name, size) for name in POLICIES}
            row |= {name: counts.shown(scene, name, "LRU", size) for name in ("independent", "walk")}
            rows.append({"size": f"{size:,}"} | row)
        text += table(columns, rows)
    return text


def claims(counts):
    """Sentences of the appendix and what the simulation gives."""
    one = {s: counts.mean(s, "dependent", "LRU", 1) for s in TWO_JOBS + FOUR_JOBS}
    alone = {s: counts.mean(s, "independent", "LRU", 1) for s in one}
    spared = {s: 1 - one[s] / alone[s] for s in one}
    of_avoidable = (alone["size 75%"] - one["size 75%"]) / (alone["size 75%"] - counts.union("size 75%"))
    always = all(
        counts.mean(s, "dependent", policy, size) == counts.union(s)
        for s in TWO_JOBS[:4]
        for policy in ("LRU", "RefCnt")
        for size in counts.misses[s, "dependent", policy]
    )

    def enough(scene, sampler, policy):
        size = counts.enough(scene, sampler, policy)
        return f"{size:,}" if size else "more than 10,000"

    def fewer(scene):
        """By how much RefCnt has fewer misses than the best of LRU, FIFO and random, at each size."""
        parts = []
        for size in counts.misses[scene, "dependent", "RefCnt"]:
            others = min(counts.mean(scene, "dependent", policy, size) for policy in ("LRU", "FIFO", "random"))
            parts.append((1 - counts.mean(scene, "dependent", "RefCnt", size) / others, size))
        part, size = max(parts)
        return f"{part:.0%} at most, with {size:,}"

    rows = [
        ("Two jobs of equal size: the fewest misses, whatever the cache", "so it is" if always else "it is not"),
        (
            "Independent sampling with one slot: all are missed; the fewest only if all of the intersection is cached",
            f"equal jobs: {alone['intersection 100%']:.0f} of 20,000; within 1% of the fewest with "
            f"{enough('intersection 100%', 'independent', 'LRU')} cached",
        ),
        (
            "Sizes that differ by 25%, one slot: 50% fewer misses than independent sampling",
            f"{one['size 75%']:.0f} of {alone['size 75%']:.0f}: {spared['size 75%']:.0%} fewer. It is "
            f"{of_avoidable:.0%} of the misses that can be avoided at all",
        ),
        (
            "Sizes that differ: the best with 30% cached (25% in the sentence after), independent sampling with 75%",
            "within 1% of the fewest, with LRU and RefCnt: "
            + "; ".join(
                f"{s}: {enough(s, 'dependent', 'LRU')} and {enough(s, 'dependent', 'RefCnt')} "
                f"(independent: {enough(s, 'independent', 'LRU')} and {enough(s, 'independent', 'RefCnt')})"
                for s in TWO_JOBS[4:]
            ),
        ),
        (
            "4 samples, one slot: 50% fewer, 20000 of 40000",
            f"{one['4 samples']:.0f} of {alone['4 samples']:.0f}: {spared['4 samples']:.0%} fewer. By vertex "
            f"{counts.mean('4 samples', 'by vertex', 'LRU', 1):.0f}",
        ),
        (
            "4 sizes, one slot: 30% fewer, 16000 of 22000",
            f"{one['4 sizes']:.0f} of {alone['4 sizes']:.0f}: {spared['4 sizes']:.0%} fewer. The four sets have "
            f"{counts.draws('4 sizes'):.0f} elements together, so that 22000 cannot be",
        ),
        (
            "RefCnt has 10% fewer misses than LRU, FIFO and random replacement",
            "; ".join(f"{s}: {fewer(s)}" for s in FOUR_JOBS),
        ),
        (
            "RefCnt is best with 60% cached, the others with everything",
            "within 1% of the fewest: "
            + "; ".join(
                f"{s}: RefCnt {enough(s, 'dependent', 'RefCnt')}, LRU {enough(s, 'dependent', 'LRU')}, "
                f"FIFO {enough(s, 'dependent', 'FIFO')}, random {enough(s, 'dependent', 'random')}"
                for s in FOUR_JOBS
            ),
        ),
    ]
    named = [{"says": says, "gives": gives} for says, gives in rows]
    return "Sizes were simulated as the tables show, from 1 to 10,000.\n\n" + table(
        {"the paper says": "says", "the simulation gives": "gives"}, named
    )


def courses(counts):
    columns = {"course": "scene", "draws": lambda row: f"{row['draws']:.0f}", "elements cached": "size"}
    columns |= {name: (lambda row, name=name: row[name]) for name in SAMPLERS}
    rows = [
        {"scene": scene, "draws": counts.draws(scene), "size": f"{size:,}"}
        | {name: counts.shown(scene, name, "RefCnt", size) for name in SAMPLERS}
        for scene in COURSES
        for size in (1, 1000, 3000)
    ]
    caption = "reads per round of six courses, for five samplers"
    return COURSES_TEXT + figure("joader_courses.svg", caption) + table(columns, rows)


def blocks(counts):
    once = dict(zip(COURSES, (2, 3.75, 4, 4, 2, 2)))

    def of(scene, name, size):
        return counts.mean(f"{scene} of 1000 blocks", name, "RefCnt", size) / 1000

    columns = {"course": "scene", "alone": "alone", "once": "once", "cached": "size"}
    columns |= {name: (lambda row, name=name: row[name]) for name in SAMPLERS}
    rows = [
        {
            "scene": scene,
            "alone": f"{counts.draws(f'{scene} of 1000 blocks') / 1000:.2f}",
            "once": f"{once[scene]:.2f}",
            "size": f"{size / 1000:.1%}",
        }
        | {name: f"{of(scene, name, size):.2f}" for name in SAMPLERS}
        for scene in COURSES
        for size in (1, 10, 100, 300)
    ]
    verdict = VERDICT.format(
        staggered_follow=of("4 staggered jobs", "follow", 10),
        staggered_walk=of("4 staggered jobs", "walk", 10),
        staggered=of("4 staggered jobs", "dependent", 10),
        staggered_tenth=of("4 staggered jobs", "dependent", 100),
        speeds_walk=of("speeds 1:2:4", "walk", 10),
        speeds_alone=counts.draws("speeds 1:2:4 of 1000 blocks") / 1000,
        speeds=of("speeds 1:2:4", "dependent", 10),
        speeds_follow=of("speeds 1:2:4", "follow", 10),
        filters_walk=of("4 filters", "walk", 10),
        filters=of("4 filters", "dependent", 10),
        buffers_walk=of("4 by buffers", "walk", 100),
        buffers=of("4 by buffers", "dependent", 100),
        buffers_follow=of("4 by buffers", "follow", 100),
        filters_follow=of("4 filters", "follow", 10),
    )
    return BLOCKS + table(columns, rows) + verdict
