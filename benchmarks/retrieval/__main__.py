"""`python -m benchmarks.retrieval quality|turns|scale|indexing|recall`: which passages are found, how
long that takes, and how fast they are made; and the same of one's own chats, by their meaning."""

import argparse

from benchmarks.retrieval.ground import ground
from benchmarks.table import machine, save, show


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parts = parser.add_subparsers(dest="part", required=True)
    quality = parts.add_parser("quality", help="recall on XQuAD's questions, beside BM25")
    quality.add_argument("--languages", nargs="+", default=["en", "de", "zh"])
    parts.add_parser("turns", help="recall of questions that mean what was spoken of before")
    scale = parts.add_parser("scale", help="the time of a search among many passages")
    scale.add_argument("--chunks", type=int, nargs="+", default=[100_000])
    scale.add_argument("--searches", type=int, default=100)
    indexing = parts.add_parser("indexing", help="documents into passages, and a chat meanwhile")
    indexing.add_argument("--documents", type=int, default=500)
    recall = parts.add_parser(
        "recall", help="one's own chats by meaning: time, and what cosines tell"
    )
    recall.add_argument("--vectors", type=int, nargs="+", default=[5_000, 20_000, 100_000])
    recall.add_argument("--searches", type=int, default=100)
    options = parser.parse_args()
    if options.part == "indexing":
        from benchmarks.retrieval import indexing as on_site

        rows = on_site.measure(options.documents)
        show("PDFs of two pages, while one person chats", rows)
        save("retrieval-indexing", {"machine": machine(), "rows": rows})
        return
    with ground():
        if options.part == "recall":
            from benchmarks.retrieval import recall as chats

            found = chats.quality()
            show("% of the queries that find something, by the least cosine", found)
            save("retrieval-recall-quality", {"machine": machine(), "rows": found})
            rows = chats.speed(options.vectors, options.searches)
            title = "One's own messages, compared one by one"
        elif options.part == "turns":
            from benchmarks.retrieval import turns as part

            rows = part.measure()
            title = "XQuAD's English questions as the second of a chat"
        elif options.part == "quality":
            from benchmarks.retrieval import quality as part

            rows = part.measure(options.languages)
            title = "XQuAD: 240 passages and 1,190 questions in each language"
        else:
            from benchmarks.retrieval import scale as part

            rows = part.measure(options.chunks, options.searches)
            title = "Hybrid search, milliseconds, by who may see how much of it"
    show(title, rows)
    save(f"retrieval-{options.part}", {"machine": machine(), "rows": rows})


if __name__ == "__main__":
    main()
