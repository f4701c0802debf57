import { Schema } from "effect"

/** How one check of an endpoint came out, the worst last. */
export const CheckResult = Schema.Literals(["ok", "unknown", "warning", "problem"])
export type CheckResult = typeof CheckResult.Type

/** One thing that was looked at, and what to do about it. Both are sentences for people. */
export const Check = Schema.Struct({
  name: Schema.Literals([
    "state",
    "worker",
    "events",
    "name",
    "connection",
    "certificate",
    "failures",
    "rate",
    "circuit",
    "waiting",
    "dead letters"
  ]),
  result: CheckResult,
  says: Schema.String,
  /** What to do. Absent where nothing is to be done. */
  advice: Schema.optionalKey(Schema.String)
})
export type Check = typeof Check.Type
