import { nobody } from "../../../domain/token.ts"
import type { Audit } from "../../../history/audit/audit.ts"
import type { AuditProblem } from "../../../history/audit/problem.ts"
import { reachesNoEvent } from "../../../history/audit/reach.ts"
import { plainText } from "../../../text/plain-text.ts"
import { countText, localTimeMs, plural } from "../../../text/quantities.ts"
import { roundText } from "../../../text/round-text.ts"

const width = 80
/** Maximum number of problems listed for people. The others are only counted. */
const shownProblems = 50

const row = (label: string, count: number, says = ""): string =>
  `  ${label.padEnd(24)}${countText(count).padStart(14)}${says === "" ? "" : `  ${says}`}`

const rowIf = (label: string, count: number, says = ""): ReadonlyArray<string> =>
  count === 0 ? [] : [row(label, count, says)]

const byCount = (counts: ReadonlyMap<string, number>): ReadonlyArray<string> =>
  [...counts].sort(([, a], [, b]) => b - a).map(([name, count]) => row(`  ${name}`, count))

/** Wraps a text to the width, with continuation lines indented. */
const fitted = (text: string): ReadonlyArray<string> => {
  const lines: Array<string> = []
  let line = ""
  for (const word of plainText(text).split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line)
      line = `    ${word}`
    } else line = line === "" ? word : `${line} ${word}`
  }
  return [...lines, line]
}

const whose = ({ endpoint, event, eventSeq, round, tenant }: AuditProblem): string => {
  const name = event ?? (eventSeq === undefined ? "" : `event ${eventSeq}`)
  const target = endpoint === undefined || tenant === undefined ? "" : ` → ${tenant}/${endpoint}`
  const again = round === undefined || round === "0" ? "" : ` (${roundText(round)})`
  return name === "" ? "" : `${name}${target}${again}: `
}

const problemLines = ({ judgement }: Audit): ReadonlyArray<string> => {
  const { counts, list, total } = judgement.problems
  if (total === 0) return []
  const rest = total - Math.min(list.length, shownProblems)
  return [
    "",
    "Problems",
    ...[...counts].map(([kind, count]) => row(kind, count)),
    "",
    ...list
      .slice(0, shownProblems)
      .flatMap((problem) => fitted(`${problem.kind}: ${whose(problem)}${problem.says}`)),
    ...(rest === 0 ? [] : [`and ${countText(rest)} more; --json shows up to 10,000`])
  ]
}

const rangeText = ({ reach }: Audit, now: number): ReadonlyArray<string> => {
  const { firstEvent, lastEvent, tenant } = reach.scope
  const whom = tenant === undefined ? "" : ` of ${tenant}`
  if (reachesNoEvent(reach))
    return fitted(
      "No stored event can be audited: all are older than the oldest fact that the history still has, or at most five minutes newer."
    )
  const begin =
    reach.since === 0
      ? []
      : [`The streams no longer hold everything from before ${localTimeMs(reach.since, now)}.`]
  return [
    ...fitted(
      firstEvent > lastEvent
        ? `No event${whom} in this range is stored.`
        : `Events ${countText(firstEvent)} to ${countText(lastEvent)}${whom}.`
    ),
    ...begin
  ]
}

/** Returns the failure message of the audit, or undefined if it is clean. */
export const refusalOf = ({ reading, judgement, reach }: Audit): string | undefined => {
  switch (judgement.verdict) {
    case "clean":
      return undefined
    case "problems":
      return `the audit found ${plural(judgement.problems.total, "problem")}; docs/operate/audit.md says what each means`
    case "unvouched":
      if (reachesNoEvent(reach))
        return "nothing can be vouched for: the history does not reach back to any stored event. `petrel init --history-bytes` or --history-age lets it keep more facts"
      if (reading.planCheck.unknown > 0 && reach.isVouched)
        return `the range cannot be vouched for: plans of events up to ${new Date(reading.planCheck.unknownUntil).toISOString()} do not say what they were made from. Nothing else is wrong; --since after that audits the rest`
      return `the range cannot be vouched for: the streams reach back to ${new Date(reach.since).toISOString()} only. Within that nothing is wrong; --since that or later audits what is there`
  }
}

/** Says what was found to be right, and that this is not about events without deliveries. */
const cleanText = ({ events, tally }: Audit["judgement"]): string => {
  if (events.stored === 0 && tally.begun === 0)
    return "Clean: this range has no event and no delivery."
  const rest =
    events.unreached === 0
      ? ""
      : ` This does not cover the ${plural(events.unreached, "event")} not routed yet: \`petrel status\` says since when.`
  return `Clean: every delivery has ended once, or waits where it was found.${rest}`
}

const verdictText = ({ judgement, reach }: Audit): string => {
  switch (judgement.verdict) {
    case "clean":
      return cleanText(judgement)
    case "problems":
      return `${plural(judgement.problems.total, "problem")} found.`
    case "unvouched":
      return reachesNoEvent(reach)
        ? "Unvouched: nothing is wrong in the facts that are left, but they cover no stored event."
        : "Unvouched: nothing is wrong in the streams, but they do not reach back far enough."
  }
}

/** Returns the audit for people, in lines of up to 80 columns. */
export const auditLines = (audit: Audit, now: number): ReadonlyArray<string> => {
  const { reading, judgement } = audit
  const { events, tally } = judgement
  const skipped = [...reading.ledger.skipped.values()].reduce((sum, count) => sum + count, 0)
  return [
    ...rangeText(audit, now),
    "",
    row("events", events.stored),
    ...rowIf("  not routed yet", events.unreached, "the router has not reached them"),
    ...rowIf("  copied twice", events.repeated, "from a source: repeats are left out"),
    ...rowIf("    delivered again", events.deliveredAgain, "copied long after the first"),
    row("deliveries", tally.begun),
    row("  delivered", tally.delivered),
    ...rowIf("    more than once", tally.repeated, "repeats after a crash, not faults"),
    ...rowIf("    late", tally.late, "recorded by a former owner, not faults"),
    ...rowIf("  dead-lettered", tally.deadLettered),
    ...byCount(tally.reasons).map((line) => `  ${line}`),
    ...rowIf("  discarded", tally.discarded),
    ...rowIf("  waiting", tally.pending, "each was found where it waits"),
    ...rowIf("  overdue", tally.overdue, "waiting past their deadline"),
    row("  missing", tally.missing),
    ...rowIf("skipped", skipped, "endpoints that took no events"),
    row("plans recomputed", reading.planCheck.recomputed, "each endpoint that wanted an event"),
    ...rowIf("  not possible", reading.planCheck.unknown, "an older version made them"),
    row("facts read", reading.history.messages),
    ...problemLines(audit),
    ...audit.cautions.flatMap(({ events, kind, says, tenant }) => [
      "",
      ...fitted(
        kind === "restored" || tenant === nobody
          ? `Caution: ${kind}: ${says}`
          : `Caution: ${kind}: ${plural(events, "event")} of ${tenant}: ${says}`
      )
    ]),
    ...audit.remarks.flatMap(({ endpoint, kind, says, tenant }) => [
      "",
      ...fitted(
        tenant === nobody
          ? `Remark: ${kind}: ${says}`
          : `Remark: ${kind}: ${tenant}/${endpoint}: ${says}; see petrel rebuild health`
      )
    ]),
    "",
    ...fitted(verdictText(audit)).map((line) => line.trim())
  ]
}
