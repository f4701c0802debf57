import { Schema } from "effect"
import { Reconciliation } from "../../../domain/reconciliation.ts"
import { type SourceName, sourceLabel } from "../../../domain/source.ts"
import { jsonOf, Timestamp } from "../../../domain/timestamp.ts"
import type { Missing } from "../../../reconcile/comparison.ts"
import type { Reconciled } from "../../../reconcile/reconcile.ts"
import { countText, localTime, plural } from "../../../text/quantities.ts"

const MissingView = Schema.Struct({
  event: Schema.Literal("missing"),
  id: Schema.String,
  type: Schema.optional(Schema.String),
  at: Schema.optional(Timestamp),
  became: Schema.Literals(["fetched", "asked", "not-had", "late", "found"]),
  why: Schema.optional(Schema.String)
})

const DoneView = Schema.Struct({
  event: Schema.Literal("done"),
  tenant: Schema.String,
  source: Schema.String,
  ...Reconciliation.fields,
  /** Why it was broken off. */
  failed: Schema.optionalKey(Schema.String)
})

const encodeMissing = jsonOf(MissingView)
const encodeDone = jsonOf(DoneView)

export const missingJson = (missing: Missing) => encodeMissing({ event: "missing", ...missing })

export const doneJson = ({ id, tenant }: SourceName, { found, problem }: Reconciled) =>
  encodeDone({
    ...{ event: "done", tenant, source: id, ...found },
    ...(problem === undefined ? {} : { failed: problem })
  })

const became: Readonly<Record<Missing["became"], string>> = {
  fetched: "fetched",
  asked: "asked for: the provider sends it again",
  "not-had": "not fetched",
  late: "came in meanwhile",
  found: "missing"
}

/** The line of a missing event. */
export const missingLine = ({ at, became: how, id, type, why }: Missing, now: number): string =>
  [
    at === undefined ? "" : localTime(at, now),
    id,
    type ?? "",
    why === undefined ? became[how] : `${became[how]}: ${why}`
  ]
    .filter((text) => text !== "")
    .join("  ")

/** What was found, in a few lines. */
export const doneText = (
  name: SourceName,
  { found, problem }: Reconciled,
  isDryRun: boolean,
  now: number
): string => {
  const { asked, fetched, listed, missing, present, since, tooOld, until } = found
  const left = missing - fetched - asked
  const span = `${localTime(since, now)} to ${localTime(until, now)}`
  return [
    ...(problem === undefined ? [] : [`broken off: ${problem}`]),
    `${sourceLabel(name)}, ${span}: ${plural(listed, "event")} listed, ${countText(present)} had come in, ${countText(missing)} had not`,
    ...(fetched === 0 ? [] : [`${plural(fetched, "event")} fetched and stored`]),
    ...(asked === 0
      ? []
      : [`${plural(asked, "event")} asked for: reconcile again later to see that they came`]),
    ...(isDryRun || left === 0 ? [] : [`${plural(left, "event")} could not be fetched`]),
    ...(isDryRun && missing > 0 ? ["nothing was fetched: run it without --dry-run"] : []),
    ...(tooOld === 0
      ? []
      : [
          `${plural(tooOld, "event")} older than what is kept here: not known whether they came in, and not fetched`
        ])
  ].join("\n")
}
