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

/** Returns the parts whose numbers are not 0. */
const said = (
  ...parts: ReadonlyArray<readonly [n: unknown, text: string]>
): ReadonlyArray<string> =>
  parts.flatMap(([n, text]) => (number(n) > 0 ? [`${counted(number(n))} ${text}`] : []))

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
  return [(n === 1 && held[0]?.why) || `endpoints that take nothing now: ${counted(n)}`]
}

const redeliveredText = (result: Values): ReadonlyArray<string> => [
  `${counted(number(result.redelivered))} sent again`,
  ...said(
    [result.mayRepeat, "of them perhaps sent again before: the history does not reach back"],
    [result.before, "sent again before, by this or another redelivery"],
    [result.deliveredLate, "delivered after all"],
    [result.superseded, "left out for newer dead letters of the same deliveries"],
    [result.gone, "not kept any more"],
    [leftIn(result), "for endpoints that take nothing now"]
  )
]

const retriedText = (result: Values): ReadonlyArray<string> => [
  `${counted(number(result.moved))} tried at once`,
  ...said(
    [result.inFlight, "being attempted"],
    [result.inBacklog, "in a backlog, sent when their endpoint takes them"],
    [result.left, "left as before"]
  ),
  ...heldText(result)
]

/** Returns what came of a job, once it is over. */
export const resultText = ({ kind, problem, result }: Job): string => {
  if (result === undefined) return problem ?? ""
  switch (kind) {
    case "replay":
      return [
        `${counted(number(result.replayed))} sent again`,
        ...said(
          [result.before, "sent by this replay before"],
          [result.delivered, "delivered already"],
          [result.underWay, "on the way already"],
          [result.unrouted, "not routed yet"],
          [result.gone, "not kept any more"]
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
    `${counted(plan.replay)} to be sent`,
    ...said(
      [plan.before, "sent by this replay before"],
      [plan.delivered, "delivered already"],
      [plan.underWay, "on the way already"],
      [plan.unrouted, "not routed yet"]
    )
  ].join("; "),
  of: [
    ...counts(plan.types),
    ...(plan.otherTypes > 0 ? [["other types", plan.otherTypes] as const] : [])
  ]
})

const waitingText = (plan: RetryPlan): ReadonlyArray<string> => [
  ...said(
    [plan.inFlight, "being attempted"],
    [plan.inBacklog, "in a backlog, sent when their endpoint takes them"],
    [plan.left, "to be left as before"]
  ),
  ...heldText({ ...plan })
]

/** Returns what a bulk retry would do. */
export const retryPlanText = (plan: RetryPlan): PlanText => ({
  sends: plan.moved + plan.inBacklog,
  says: [`${counted(plan.moved)} to be tried now`, ...waitingText(plan)].join("; "),
  of: []
})

/** Returns what is left alone of dead letters. */
export const leftText = (plan: RedeliveryPlan): ReadonlyArray<string> =>
  said(
    [plan.mayRepeat, "of them perhaps sent again before: the history does not reach back"],
    [plan.before, "sent again before"],
    [plan.deliveredLate, "delivered after all"],
    [plan.superseded, "left out for newer dead letters of the same deliveries"],
    [plan.gone, "not kept any more"],
    [leftIn({ ...plan }), "for endpoints that take nothing now"]
  )

/** Returns what a recovery would do. */
export const recoveryPlanText = (plan: RecoveryPlan): PlanText => ({
  sends: plan.redeliver + plan.retried.moved + plan.retried.inBacklog,
  says: [
    `of the dead letters ${counted(plan.redeliver)} to be sent again`,
    `of what waits ${counted(plan.retried.moved)} to be tried now`,
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
