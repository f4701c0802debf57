import { countText, plural, spanText } from "../../../../text/quantities.ts"
import { makeTable } from "../../../format/screen.ts"
import { expected, type Kind } from "./plan.ts"
import type { KindReport, StormReport } from "./storm.ts"

const kindTexts: Readonly<Record<Kind, string>> = {
  first: "each event, out of order",
  repeat: "the same event again",
  stale: "signed an hour ago",
  future: "signed an hour ahead",
  unsigned: "without a signature",
  foreign: "signed with another secret",
  forged: "changed after it was signed",
  aborted: "cut off in its body",
  oversized: "a huge body"
}

const answersText = ({ answers }: KindReport): string =>
  Object.entries(answers)
    .sort(([, one], [, other]) => other - one)
    .map(([answer, count]) => `${countText(count)} × ${answer}`)
    .join(", ")

/** Returns what a receiver did in a storm, as lines. */
export const stormLines = (report: StormReport): ReadonlyArray<string> => {
  const { elapsedMs, events, faults, ids, isCutShort, kinds, requests, taken } = report
  const rows = Object.entries(kindTexts).flatMap(([word, text]) => {
    const kind = word as Kind
    const found = kinds[kind]
    if (found === undefined) return []
    const should = expected[kind] ?? "no matter"
    const shown = kind === "aborted" ? "" : answersText(found)
    const times = kind === "aborted" ? ["", ""] : [`${found.p50Ms} ms`, `${found.p99Ms} ms`]
    return [[text, should, countText(found.sent), ...times, shown]]
  })
  return [
    ...makeTable(["requests", "should be", "sent", "p50", "p99", "answers"]).lines(rows),
    "",
    `${plural(requests, "request")} in ${spanText(elapsedMs)}${isCutShort ? "; the time was over before all were sent" : ""}.`,
    `${countText(taken)} of ${plural(events, "event")} were taken. Each must have had its effect once: their ids are ${ids}-0 to ${ids}-${events - 1}, and nothing may be seen of those with a word before that.`,
    ...(faults.length === 0
      ? ["Nothing was taken that should not be."]
      : faults.map((fault) => `NOT RIGHT: ${fault}.`))
  ]
}
