import { resumeBelowShare } from "../../broker/storage-limits.ts"
import type { Survey } from "../../delivery/introspection/survey.ts"
import type { KeptStream } from "../../delivery/introspection/survey-storage.ts"
import type { Filled } from "../../domain/installation.ts"
import { isCrowded } from "../../policy/storage-quotas.ts"
import { plainText } from "../../text/plain-text.ts"
import {
  bytesText,
  countText,
  percentText,
  plural,
  spanText,
  zonedTime
} from "../../text/quantities.ts"
import type { Condition, Conditions } from "./conditions.ts"

/** Returns true if the given percentage of a limit is used. */
const isUsed = ({ bytes, limitBytes }: typeof Filled.Type, percent: number): boolean =>
  bytes !== null && limitBytes !== null && bytes * 100 >= limitBytes * percent

const usedText = ({ bytes, limitBytes }: typeof Filled.Type): string =>
  percentText(bytes ?? 0, limitBytes ?? 0)

/** Percentages of a limit: about to reject writes, and worth a notice. */
const full = 95
const filling = 80

interface Bounded extends Condition {
  readonly of: typeof Filled.Type
}

/** @param flag what makes room in the stream. */
const fullEvents = (at: number, { maxAge, name, room }: KeptStream, flag: string): string => {
  const { bytes, limitBytes, oldestAt } = room
  const freed =
    maxAge === undefined || oldestAt === null
      ? ""
      : `; its oldest events are removed from ${zonedTime(oldestAt + maxAge, at)} on, ${spanText(maxAge)} old`
  return `${name} is ${usedText(room)} full (${bytesText(bytes ?? 0)} of ${bytesText(limitBytes ?? 0)}), and refuses events when it is full; what it holds is delivered${freed}; raise \`petrel init ${flag}\` to make room sooner`
}

/** Whose stream is full learns it from the broker's refusals; the operator sees it here only. */
const fullTenants = (at: number, streams: ReadonlyArray<KeptStream>): ReadonlyArray<Bounded> => {
  const share = ({ room: { bytes, limitBytes } }: KeptStream) => (bytes ?? 0) / (limitBytes ?? 1)
  const used = streams.some(({ room }) => isUsed(room, full)) ? full : filling
  const [fullest, ...others] = streams
    .filter(({ room }) => isUsed(room, used))
    .sort((a, b) => share(b) - share(a))
  if (fullest === undefined) return []
  const further =
    others.length === 0 ? "" : `; so it is with ${plural(others.length, "other tenant")}`
  const text = `${fullEvents(at, fullest, "--tenant-bytes")}, for all tenants${further}`
  return [{ code: "events-full", text, of: fullest.room }]
}

/** A full history discards its oldest facts. This is not a problem, but shortens its reach. */
const aboutHistory = ({ at, room: { history } }: Survey): ReadonlyArray<Condition> => {
  const { maxAge, name, room } = history
  const { oldestAt } = room
  if (!isUsed(room, full) || oldestAt === null) return []
  const asked = maxAge === undefined ? "" : ` instead of ${spanText(maxAge)}`
  return [
    {
      code: "history-full",
      text: `${name} is full and drops its oldest facts: it goes back ${spanText(at - oldestAt)}${asked}, and nothing before can be audited; raise \`petrel init --history-bytes\``
    }
  ]
}

/**
 * Refuses whatever comes in while it lasts. A filling intake is nothing to tell: it keeps what has
 * become an event, to recognise it, until a worker removes the oldest.
 */
const aboutIntake = ({ incoming }: Survey): ReadonlyArray<Condition> =>
  incoming === undefined || !isUsed(incoming, full)
    ? []
    : [
        {
          code: "intake-full",
          text: `what came in takes ${usedText(incoming)} of ${bytesText(incoming.limitBytes ?? 0)}, and webhooks and rows of outboxes are refused when it is full: a worker makes room within some 10 s where it is an event by now (${incoming.notCopied === null ? "how much is none is not known" : `${countText(incoming.notCopied)} ${incoming.notCopied === 1 ? "is" : "are"} none`}); release or discard what is in quarantine (\`petrel quarantine list TENANT\`), or raise \`petrel init --intake-bytes\``
        }
      ]

/** An event stream without a limit may take the storage that the engine needs to continue. */
const aboutUnbounded = ({ room: { events } }: Survey): ReadonlyArray<Condition> =>
  events.room.bytes === null || events.room.limitBytes !== null
    ? []
    : [
        {
          code: "events-unbounded",
          text: `${events.name} has no limit: events can fill the broker's store, and then nothing is delivered either; give it half of the store with \`petrel init --event-bytes\``
        }
      ]

/** Events are not routed while the queues are full: only what nobody delivers fills them. */
const aboutQueues = ({ room }: Survey): ReadonlyArray<Condition> => {
  const { bytes, limitBytes: limit } = room.queues
  return bytes === null || limit === null || bytes < limit * resumeBelowShare
    ? []
    : [
        {
          code: "queues-full",
          text: `queues take ${bytesText(bytes)} of ${bytesText(limit)} because nobody delivers what is in them, and when they are full events are not routed until some has gone out: start workers with the role deliver (\`petrel workers\` shows partitions without one), or more of them`
        }
      ]
}

/** Nobody is held up by it, but who has his share gets dead letters. */
const aboutBacklogs = ({ room, waitingByTenant }: Survey): ReadonlyArray<Condition> => {
  const { bytes, limitBytes: maxBytes } = room.backlogs
  return bytes === null || maxBytes === null || !isCrowded({ bytes, maxBytes })
    ? []
    : [
        {
          code: "backlogs-crowded",
          text: `backlogs take ${bytesText(bytes)} of ${bytesText(maxBytes)}${mostOf([...(waitingByTenant ?? [])])}: each tenant has an equal share now, and what comes for an endpoint beyond it is a dead letter (\`backlog-full\`); mend the receivers of the endpoints for which the most waits (\`petrel endpoint list TENANT\` shows them), end what waits for one with \`petrel endpoint disable\`, or raise \`petrel init --event-bytes\``
        }
      ]
}

/** Returns the tenants with the most, highest first. */
const mostOf = (byTenant: ReadonlyArray<readonly [tenant: string, count: number]>): string => {
  if (byTenant.length === 0) return ""
  const most = byTenant.toSorted(([, a], [, b]) => b - a)
  const named = most.slice(0, 3).map(([tenant, count]) => `${tenant} ${countText(count)}`)
  const others = most.length - named.length
  return ` (${named.join(", ")}${others === 0 ? "" : ` and ${plural(others, "other tenant")}`})`
}

/**
 * The broker's health and the streams' infos say nothing of it to a client. A stream without a leader
 * stores nothing either, which is told of it already.
 */
const aboutDisk = ({ streams, writeErrors }: Survey): ReadonlyArray<Condition> => {
  const leaderless = new Set(
    streams.filter(({ state }) => state === "leaderless").map(({ name }) => name)
  )
  const [first, ...others] = writeErrors
    .filter(({ reason, stream }) => reason !== undefined || !leaderless.has(stream))
    // One with a reason says the most.
    .toSorted((a, b) => Number(a.reason === undefined) - Number(b.reason === undefined))
  if (first === undefined) return []
  const { ms = 0, reason, stream } = first
  const further = others.length === 0 ? "" : `, and so for ${plural(others.length, "other stream")}`
  const found =
    reason === undefined
      ? `the broker has acknowledged nothing that was to be stored in ${stream} for ${spanText(ms)}${further}, as after a failed write to its disk, or where Petrel's user may not publish there: its log says which`
      : `the broker's disk took no more for ${stream} (${reason})${further}: nothing is stored there and publishers get no answer`
  return [
    {
      code: "disk-failed",
      text: `${found}; see to the disk, then restart the broker, which does not try again by itself`
    }
  ]
}

/** What the broker's servers say of themselves. */
const aboutHealth = ({ health = [] }: Survey): Conditions => ({
  problems: health
    .filter(({ isWell }) => isWell === false)
    .map(({ says, server }) => ({
      code: "broker-unhealthy",
      text: `the server at ${server} says that it is not well (${plainText(says)}): look at its log; after a failed write it stores nothing in that stream until it is restarted with room`
    })),
  notices: health
    .filter(({ isWell }) => isWell === undefined)
    .map(({ says, server }) => ({
      code: "broker-health-unknown",
      text: `${server} does not say how the broker is (${plainText(says)}): start it with a monitoring port, or correct the address`
    }))
})

/** Returns the conditions of the space in the streams and in the store. */
export const storageConditions = (survey: Survey): Conditions => {
  const { account, at, dead, room } = survey
  const { events, ownEvents } = room
  const deadText = `the dead-letter stream is ${usedText(dead)} full${mostOf(Object.entries(dead.byTenant ?? {}))}, and what ends then waits: make room with \`petrel dead discard\` or \`petrel init --dead-bytes\``
  const storageText = `the broker's storage is ${usedText(account)} full, and when it is full, nothing is stored and nothing delivered: raise the account's max_file`
  const bounded: ReadonlyArray<Bounded> = [
    { code: "events-full", text: fullEvents(at, events, "--event-bytes"), of: events.room },
    ...(ownEvents === undefined
      ? []
      : [
          {
            code: "events-full",
            text: fullEvents(at, ownEvents, "--tenant-bytes"),
            of: ownEvents.room
          }
        ]),
    ...fullTenants(at, room.tenantEvents ?? []),
    { code: "dead-letters-full", text: deadText, of: dead },
    { code: "storage-full", text: storageText, of: account }
  ]
  const isFull = ({ of }: Bounded) => isUsed(of, full)
  const isFilling = ({ of }: Bounded) => isUsed(of, filling)
  const plain = ({ code, text }: Bounded): Condition => ({ code, text })
  const health = aboutHealth(survey)
  return {
    problems: [
      ...aboutDisk(survey),
      ...health.problems,
      ...bounded.filter(isFull).map(plain),
      ...aboutIntake(survey),
      ...aboutQueues(survey),
      ...aboutBacklogs(survey)
    ],
    notices: [
      ...health.notices,
      ...bounded.filter((one) => isFilling(one) && !isFull(one)).map(plain),
      ...aboutHistory(survey),
      ...aboutUnbounded(survey)
    ]
  }
}
