import type { DeliveryLife, DeliveryRound, RecordedAttempt } from "../history/fold/delivery.ts"
import type { LoggedAttempt, LoggedRound } from "./delivery-log.ts"

const given = <K extends string, A>(key: K, value: A | null): { readonly [key in K]?: A } =>
  (value === null ? {} : { [key]: value }) as { readonly [key in K]?: A }

const attemptOf = (logged: LoggedAttempt): RecordedAttempt => ({
  number: logged.number,
  at: logged.at,
  isSuccess: logged.isSuccess,
  ...(logged.isProbe ? { isProbe: true as const } : {}),
  ...given("status", logged.status),
  ...given("error", logged.error),
  ...given("durationMs", logged.durationMs),
  ...given("nextAttemptAt", logged.nextAttemptAt),
  ...given("worker", logged.worker)
})

const roundOf = (logged: LoggedRound): DeliveryRound => {
  const { at, beganAt, begunBy, bits, nextAttemptAt, recorded, repeats, state } = logged
  return {
    round: logged.round,
    state: bits,
    ...(begunBy === null || beganAt === null
      ? {}
      : { begun: { by: begunBy, at: beganAt, ...given("deadline", logged.deadline) } }),
    attempts: recorded.map(attemptOf),
    ...(nextAttemptAt === null
      ? {}
      : { waits: { until: nextAttemptAt, ...given("by", logged.waitsBy) } }),
    ...(state === "waiting"
      ? {}
      : {
          end: {
            at,
            ...given("reason", logged.reason),
            ...given("dead", logged.dead),
            ...given("probes", logged.endProbes),
            ...(logged.late ? { late: true as const } : {})
          }
        }),
    ...given("discardedAt", logged.discardedAt),
    repeats
  }
}

/** Returns deliveries as the history's own fold describes them, from the rounds of the log. */
export const livesOf = (rounds: ReadonlyArray<LoggedRound>): ReadonlyArray<DeliveryLife> => {
  const lives = new Map<string, DeliveryLife>()
  const began = ({ at, beganAt }: LoggedRound) => beganAt ?? at
  for (const logged of rounds.toSorted((a, b) => began(a) - began(b))) {
    if (logged.state === "skipped") continue
    const { endpoint, event, eventAt, eventSeq, tenant, type } = logged
    const key = `${eventSeq}@${eventAt}.${tenant}.${endpoint}`
    const known = lives.get(key)
    lives.set(key, {
      ...{ tenant, endpoint, event, eventSeq, eventAt },
      ...given("type", type),
      rounds: [...(known?.rounds ?? []), roundOf(logged)]
    })
  }
  return [...lives.values()]
}
