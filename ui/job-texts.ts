/* What jobs come to, in words: no document, no network. */
import type {
  Job,
  RecoveryPlan,
  RedeliveryPlan,
  ReplayPlan,
  RetryPlan
} from "../src/client/client.ts"

/** True once nothing is done for a job any more. */
export const isOver = ({ state }: Pick<Job, "state">): boolean =>
  state !== "waiting" && state !== "running"

/** How soon a job is looked at again, ms; undefined once it is over. */
export const untilOver =
  (everyMs: number) =>
  (job: Pick<Job, "state">): number | undefined =>
    isOver(job) ? undefined : everyMs

/** How soon a list of jobs is looked at again, ms. */
export const untilAllOver = ({ jobs }: { readonly jobs: ReadonlyArray<Job> }): number =>
  jobs.every(isOver) ? 10_000 : 2_000

const counted = (n: number): string => n.toLocaleString("en")

const number = (value: unknown): number => (typeof value === "number" ? value : 0)

const ofOne: Readonly<Record<string, string>> = { were: "was", are: "is", have: "has" }

/** Returns a number with what is said of so many, such as `1 was sent again`. */
const withVerb = (n: number, text: string): string =>
  `${counted(n)} ${n === 1 ? text.replace(/^\w+/, (verb) => ofOne[verb] ?? verb) : text}`

const withNoun = (n: number, one: string, many: string): string =>
  `${counted(n)} ${n === 1 ? one : many}`

/** Returns the parts whose numbers are not 0. */
const said = (
  ...parts: ReadonlyArray<readonly [n: unknown, text: string]>
): ReadonlyArray<string> =>
  parts.flatMap(([n, text]) => (number(n) > 0 ? [withVerb(number(n), text)] : []))

type Values = Readonly<Record<string, unknown>>

const leftIn = ({ skipped, skippedElsewhere }: Values): number =>
  (Array.isArray(skipped) ? (skipped as ReadonlyArray<{ count?: number }>) : []).reduce(
    (sum, { count = 0 }) => sum + count,
    number(skippedElsewhere)
  )

/** Says which endpoints take nothing: why, of a single one. */
const heldText = ({ skipped, skippedElsewhere }: Values): ReadonlyArray<string> => {
  const held = Array.isArray(skipped) ? (skipped as ReadonlyArray<{ readonly why?: string }>) : []
  const n = held.length + number(skippedElsewhere)
  if (n === 0) return []
  return [
    (n === 1 && held[0]?.why) ||
      withNoun(n, "endpoint takes nothing now", "endpoints take nothing now")
  ]
}

const redeliveredText = (result: Values): ReadonlyArray<string> => [
  withVerb(number(result.redelivered), "were sent again"),
  ...said(
    [result.mayRepeat, "of them may have been sent again before: the history no longer tells"],
    [result.before, "had been sent again before, by this or another redelivery"],
    [result.deliveredLate, "had arrived after all"],
    [result.superseded, "were left out for newer dead letters of the same deliveries"],
    [result.gone, "are not kept any more"],
    [leftIn(result), "are for endpoints that take nothing now"]
  )
]

const retriedText = (result: Values): ReadonlyArray<string> => [
  `${counted(number(result.moved))} went on at once`,
  ...said(
    [result.inFlight, "were being attempted"],
    [result.inBacklog, "are in a backlog, and go on when their endpoint takes them"],
    [result.left, "stayed as they were"]
  ),
  ...heldText(result)
]

/** Returns what came of a job, once it is over. */
export const resultText = ({ kind, problem, result }: Job): string => {
  if (result === undefined) return problem ?? ""
  switch (kind) {
    case "replay":
      return [
        withVerb(number(result.replayed), "were sent again"),
        ...said(
          [result.before, "had been sent by this replay before"],
          [result.delivered, "had arrived"],
          [result.underWay, "were on their way already"],
          [result.unrouted, "were not routed yet"],
          [result.gone, "are not kept any more"]
        )
      ].join("; ")
    case "retry":
      return retriedText(result).join("; ")
    case "recovery":
      return [...retriedText(Object(result.retried)), ...redeliveredText(result)].join("; ")
    default:
      return redeliveredText(result).join("; ")
  }
}

/** What a job would do: its sentence, and what it is made of. */
interface PlanText {
  /** What would be sent; 0: there is nothing to start. */
  readonly sends: number
  readonly says: string
  /** Counts by reason or type, highest first. */
  readonly of: ReadonlyArray<readonly [name: string, n: number]>
}

const counts = (of: Readonly<Record<string, number>>) =>
  Object.entries(of).toSorted(([, a], [, b]) => b - a)

/** Returns what a replay would send. */
export const replayPlanText = (plan: ReplayPlan): PlanText => ({
  sends: plan.replay,
  says: [
    withNoun(plan.replay, "event would be sent", "events would be sent"),
    ...said(
      [plan.before, "were sent by this replay before"],
      [plan.delivered, "have arrived"],
      [plan.underWay, "are on their way already"],
      [plan.unrouted, "are not routed yet"]
    )
  ].join("; "),
  of: [
    ...counts(plan.types),
    ...(plan.otherTypes > 0 ? [["other types", plan.otherTypes] as const] : [])
  ]
})

const waitingText = (plan: RetryPlan): ReadonlyArray<string> => [
  ...said(
    [plan.inFlight, "are being attempted"],
    [plan.inBacklog, "are in a backlog, and go on when their endpoint takes them"],
    [plan.left, "would stay as they are"]
  ),
  ...heldText({ ...plan })
]

/** Returns what a bulk retry would do. */
export const retryPlanText = (plan: RetryPlan): PlanText => ({
  sends: plan.moved + plan.inBacklog,
  says: [
    withNoun(plan.moved, "delivery would be tried now", "deliveries would be tried now"),
    ...waitingText(plan)
  ].join("; "),
  of: []
})

/** Returns what is left alone of dead letters. */
export const leftText = (plan: RedeliveryPlan): ReadonlyArray<string> =>
  said(
    [plan.mayRepeat, "may have been sent again before: the history no longer tells"],
    [plan.before, "were sent again before"],
    [plan.deliveredLate, "arrived after all"],
    [plan.superseded, "would be left out for newer dead letters of the same deliveries"],
    [plan.gone, "are not kept any more"],
    [leftIn({ ...plan }), "are for endpoints that take nothing now"]
  )

/** Returns what a recovery would do. */
export const recoveryPlanText = (plan: RecoveryPlan): PlanText => ({
  sends: plan.redeliver + plan.retried.moved + plan.retried.inBacklog,
  says: [
    `${withNoun(plan.redeliver, "dead letter", "dead letters")} would be sent again, and ${withNoun(plan.retried.moved, "delivery that waits", "deliveries that wait")} tried now`,
    ...waitingText(plan.retried),
    ...leftText(plan)
  ].join("; "),
  of: counts(plan.reasons)
})

/** Returns what a job was asked for, in words. */
export const askedText = ({ asked: { endpoint, ids, until, ...asked } }: Job): string =>
  [
    ...(endpoint === undefined ? [] : [String(endpoint)]),
    ...Object.entries(asked).map(([name, value]) =>
      value === true ? name : `${name} ${Array.isArray(value) ? value.join(", ") : String(value)}`
    ),
    ...(until === undefined ? [] : [`until ${String(until)}`])
  ].join(", ")
