import type { DeliveryLife, DeliveryRound, RecordedAttempt } from "../history/fold/delivery.ts"
import type { LoggedAttempt, LoggedRound } from "./delivery-log.ts"

type Known<A> = { readonly [K in keyof A]?: Exclude<A[K], null> }

/** Returns the fields that are not null. */
const notNull = <A extends object>(fields: A): Known<A> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null)) as Known<A>

const attemptOf = (logged: LoggedAttempt): RecordedAttempt => ({
  number: logged.number,
  at: logged.at,
  isSuccess: logged.isSuccess,
  ...(logged.isProbe ? { isProbe: true as const } : {}),
  ...notNull({ status: logged.status, error: logged.error, durationMs: logged.durationMs }),
  ...notNull({ nextAttemptAt: logged.nextAttemptAt, worker: logged.worker })
})

const roundOf = (logged: LoggedRound): DeliveryRound => {
  const { at, beganAt, begunBy, bits, nextAttemptAt, recorded, repeats, state } = logged
  return {
    round: logged.round,
    state: bits,
    ...(begunBy === null || beganAt === null
      ? {}
      : { begun: { by: begunBy, at: beganAt, ...notNull({ deadline: logged.deadline }) } }),
    attempts: recorded.map(attemptOf),
    ...(nextAttemptAt === null
      ? {}
      : { waits: { until: nextAttemptAt, ...notNull({ by: logged.waitsBy }) } }),
    ...(state === "waiting"
      ? {}
      : {
          end: {
            at,
            ...notNull({ reason: logged.reason, dead: logged.dead, probes: logged.endProbes }),
            ...(logged.late ? { late: true as const } : {})
          }
        }),
    ...notNull({ discardedAt: logged.discardedAt }),
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
      ...notNull({ type }),
      rounds: [...(known?.rounds ?? []), roundOf(logged)]
    })
  }
  return [...lives.values()]
}
