import { Schema } from "effect"
import type { TaskActivity } from "../../cluster/introspection.ts"
import type { EndpointNow } from "../../delivery/introspection/endpoint-activity.ts"
import type { Endpoint } from "../../domain/endpoint.ts"
import { circuitOf } from "../../domain/endpoint.ts"
import type { Health } from "../../domain/health.ts"
import { Timestamp } from "../../domain/timestamp.ts"
import { hostOf } from "../../endpoints/host-index.ts"
import type { SettingsInForce } from "../../endpoints/inherited-settings.ts"
import type { PendingMessage } from "../../history/audit/pending-scan.ts"
import type { DeliveryRound } from "../../history/fold/delivery.ts"
import { clockState, skewText } from "../../policy/clock-skew.ts"
import { plainText } from "../../text/plain-text.ts"
import { countText, spanText, zonedTime } from "../../text/quantities.ts"

/** All state that affects a delivery that has not ended. */
export interface Situation {
  readonly round: DeliveryRound
  /** The message in which it waits; undefined if none was found. */
  readonly waiter: PendingMessage | undefined
  /** The router has not acknowledged the event. */
  readonly isInRouter: boolean
  /** Undefined if the endpoint no longer exists. */
  readonly endpoint: Endpoint | undefined
  readonly health: Health | undefined
  readonly activity: EndpointNow
  /** What its owner is doing with it; undefined where it is not in the owner's memory. */
  readonly task?: TaskActivity | undefined
  /** What its tenant and the system have set; undefined where nothing is known. */
  readonly settings?: SettingsInForce | undefined
}

/**
 * Why a delivery is blocked: what it waits for, until when (ms since the epoch), and what unblocks
 * it.
 */
export const Blocker = Schema.Struct({
  by: Schema.Literals([
    "missing",
    "unreadable",
    "event",
    "dead-letters",
    "endpoint-removed",
    "endpoint-disabled",
    "no-worker",
    "clock",
    "time",
    "paused",
    "suspended",
    "circuit",
    "retry-after",
    "cap",
    "rate",
    "host-cap",
    "turn",
    "answer",
    "outcome"
  ]).annotateKey({ description: "What blocks it." }),
  says: Schema.String.annotateKey({ description: "What blocks it, as a sentence." }),
  until: Schema.optionalKey(Timestamp).annotateKey({ description: "Until when." }),
  freedBy: Schema.String.annotateKey({ description: "What frees it." })
})
export type Blocker = typeof Blocker.Type

const timeBlocker = ({ attempts, waits }: DeliveryRound, now: number): ReadonlyArray<Blocker> => {
  if (waits === undefined || waits.until <= now) return []
  const last = attempts.at(-1)
  const answer = last?.status ?? last?.error?.class ?? "no answer"
  return [
    {
      by: "time",
      says: `for its next attempt, in ${spanText(waits.until - now)}: attempt ${last?.number ?? 0} failed: ${answer}`,
      until: waits.until,
      freedBy: "time alone"
    }
  ]
}

const circuitBlocker = (
  health: Health,
  endpoint: Endpoint,
  now: number
): ReadonlyArray<Blocker> => {
  const { state, until = now, why = "" } = health.circuit
  if (state === "closed") return []
  const { successes } = circuitOf(endpoint)
  const next = Math.max(until, health.notBefore ?? 0)
  const probe = next > now ? `probed at ${zonedTime(next, now)}` : "probed with its next delivery"
  return [
    {
      by: "circuit",
      says: `for its endpoint's circuit, which is ${state} (${plainText(why)}) and is ${probe}`,
      ...(next > now ? { until: next } : {}),
      freedBy: `${successes} probes in a row that succeed`
    }
  ]
}

const endpointBlockers = (
  endpoint: Endpoint,
  health: Health | undefined,
  { answer, waiting }: EndpointNow,
  now: number
): ReadonlyArray<Blocker> => {
  const { disabled, maxInFlight, paused, rate, suspended } = endpoint
  const name = `${endpoint.tenant}/${endpoint.id}`
  if (disabled !== undefined)
    return [
      {
        by: "endpoint-disabled",
        says: "for a worker to end it: its endpoint is disabled",
        freedBy: "a running worker"
      }
    ]
  const { notBefore = 0 } = health ?? {}
  const isFull = answer !== undefined && answer.inFlight >= maxInFlight
  return [
    ...(paused === undefined
      ? []
      : [
          {
            by: "paused" as const,
            says: "for its endpoint to be resumed: it is paused",
            freedBy: `resuming it: \`petrel endpoint resume ${name}\``
          }
        ]),
    ...(suspended === undefined
      ? []
      : [
          {
            by: "suspended" as const,
            says: `for its endpoint to be resumed: it was suspended ${zonedTime(suspended.at, now)}, ${suspended.reason}`,
            freedBy: `resuming it: \`petrel endpoint resume ${name}\``
          }
        ]),
    ...(health === undefined ? [] : circuitBlocker(health, endpoint, now)),
    ...(notBefore > now
      ? [
          {
            by: "retry-after" as const,
            says: `until ${zonedTime(notBefore, now)}: the receiver's Retry-After holds for all deliveries to the endpoint`,
            until: notBefore,
            freedBy: "time alone"
          }
        ]
      : []),
    ...(isFull
      ? [
          {
            by: "cap" as const,
            says: `for an answer: its endpoint has ${maxInFlight === 1 ? "the one request" : `all ${maxInFlight} requests`} in flight that it may have`,
            freedBy: `answers, or a higher \`maxInFlight\` (\`petrel endpoint set ${name} --max-in-flight\`)`
          }
        ]
      : []),
    ...(rate !== undefined && waiting.backlog > 0
      ? [
          {
            by: "rate" as const,
            says: `for its turn at its endpoint's rate, with ${countText(waiting.backlog)} in the backlog`,
            freedBy: `time, or a higher \`rate\` (\`petrel endpoint set ${name} --rate\`)`
          }
        ]
      : [])
  ]
}

/** A delivery that waits without another reason may wait for its turn at its host. */
const hostBlocker = (
  { tenant, url }: Endpoint,
  { answer, waiting }: EndpointNow,
  settings: SettingsInForce | undefined
): ReadonlyArray<Blocker> => {
  const ofTenant = settings?.tenant?.hostCap
  const ofSystem = settings?.system?.hostCap
  const cap = ofTenant ?? ofSystem
  if (cap === undefined || waiting.backlog + (answer?.inLine ?? 0) === 0) return []
  const whose = ofTenant === undefined ? "all endpoints" : `${tenant}'s endpoints`
  return [
    {
      by: "host-cap",
      says: `for its turn at ${hostOf(url)}, which takes ${cap} requests of ${whose} at a time`,
      freedBy: `answers, or a higher \`hostCap\` (\`petrel tenant set ${ofTenant === undefined ? "--system" : tenant} --host-cap\`)`
    }
  ]
}

const turnText = (task: TaskActivity | undefined): string =>
  task?.mode === "waiting"
    ? `for its turn: it has been in its endpoint's line for ${spanText(task.forMs)}`
    : "for its turn"

/** What a delivery waits for that its owner has begun. */
const begunBlocker = ({ forMs, mode }: TaskActivity): Blocker | undefined => {
  const begun = `the attempt began ${spanText(forMs)} ago`
  if (mode === "sending")
    return {
      by: "answer",
      says: `for the receiver's answer: ${begun}`,
      freedBy: "the answer, or the attempt's time-out"
    }
  return mode === "deciding" || mode === "recording"
    ? { by: "outcome", says: `for its outcome to be recorded: ${begun}`, freedBy: "time alone" }
    : undefined
}

/** What keeps the owner of a partition from sending anything. */
const ownerBlockers = ({ answer, owner, partition }: EndpointNow): ReadonlyArray<Blocker> => {
  if (owner === undefined)
    return [
      {
        by: "no-worker",
        says: `for a worker: nobody has partition ${partition} now`,
        freedBy: "a worker that owns its partition: start one with `petrel worker`"
      }
    ]
  const { clockSkewMs = 0 } = answer ?? {}
  return clockState(clockSkewMs) === "wrong"
    ? [
        {
          by: "clock",
          says: `for the clock of its worker, ${plainText(owner)}, which is ${skewText(clockSkewMs)}: that worker sends nothing`,
          freedBy: "correcting that clock, for example with NTP, or stopping that worker"
        }
      ]
    : []
}

/**
 * Returns what blocks a delivery that has not ended, the most important reason first. Never empty.
 *
 * @param now ms since the epoch.
 */
export const blockersOf = (situation: Situation, now: number): ReadonlyArray<Blocker> => {
  const { activity, endpoint, health, isInRouter, round, settings, task, waiter } = situation
  const begun = task && begunBlocker(task)
  if (begun !== undefined) return [begun]
  if (waiter === undefined && isInRouter)
    return [
      {
        by: "event",
        says: "with its event, which a router is working on: it is attempted from there, or goes to its queue or backlog next",
        freedBy: "time alone, or a running worker"
      }
    ]
  if (waiter === undefined)
    return [
      {
        by: "missing",
        says: "in no place that was searched: it may just be moving; `petrel audit` says whether it is missing",
        freedBy: "an audit, which says where it is: `petrel audit`"
      }
    ]
  const owner = ownerBlockers(activity)
  // This version cannot read a deadline from the message.
  if (waiter.deadline === undefined)
    return [
      {
        by: "unreadable",
        says: `as message ${waiter.seq} of ${waiter.stream}, which this version cannot read: a newer one wrote it`,
        freedBy: "a worker of the version that wrote it"
      }
    ]
  if (waiter.ends !== undefined)
    return [
      ...owner,
      {
        by: "dead-letters",
        says: `for space among the dead letters: it has ended (${waiter.ends}), and is not sent again`,
        freedBy:
          "more space for dead letters (`petrel init --dead-bytes`, or `petrel dead discard`)"
      }
    ]
  if (endpoint === undefined)
    return [
      ...owner,
      {
        by: "endpoint-removed",
        says: "for a worker to end it: its endpoint was removed",
        freedBy: "a running worker"
      }
    ]
  const blockers = [
    ...owner,
    ...timeBlocker(round, now),
    ...endpointBlockers(endpoint, health, activity, now)
  ]
  if (blockers.length === 0) blockers.push(...hostBlocker(endpoint, activity, settings))
  return blockers.length > 0
    ? blockers
    : [{ by: "turn", says: turnText(task), freedBy: "time alone" }]
}
