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
import { type Condition, type Conditions, conditionIf } from "./conditions.ts"

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

/** @param flag the flag that gives the stream more space. */
const fullEvents = (at: number, { maxAge, name, space }: KeptStream, flag: string): string => {
  const { bytes, limitBytes, oldestAt } = space
  const freed =
    maxAge === undefined || oldestAt === null
      ? ""
      : `; from ${zonedTime(oldestAt + maxAge, at)} on, its oldest events are removed at the age of ${spanText(maxAge)}`
  return `${name} is ${usedText(space)} full (${bytesText(bytes ?? 0)} of ${bytesText(limitBytes ?? 0)}), and refuses events once it is full; the events that it holds are delivered${freed}; raise \`petrel init ${flag}\` to make space sooner`
}

/** Whose stream is full learns it from the broker's refusals; the operator sees it here only. */
const fullTenants = (at: number, streams: ReadonlyArray<KeptStream>): ReadonlyArray<Bounded> => {
  const share = ({ space: { bytes, limitBytes } }: KeptStream) => (bytes ?? 0) / (limitBytes ?? 1)
  const used = streams.some(({ space }) => isUsed(space, full)) ? full : filling
  const [fullest, ...others] = streams
    .filter(({ space }) => isUsed(space, used))
    .sort((a, b) => share(b) - share(a))
  if (fullest === undefined) return []
  const further =
    others.length === 0 ? "" : `; the same holds for ${plural(others.length, "other tenant")}`
  const text = `${fullEvents(at, fullest, "--tenant-bytes")}, for all tenants${further}`
  return [{ code: "events-full", text, of: fullest.space }]
}

/**
 * Returns the limit on a stream's number of messages, if it holds so many. No flag sets such a limit:
 * the history and the dead letters may have one of an operator's own.
 */
const reachedLimit = ({ streams }: Survey, stream: string): number | undefined => {
  const info = streams.find(({ name }) => name === stream)?.info
  const { max_msgs = -1 } = info?.config ?? {}
  return max_msgs > 0 && (info?.state.messages ?? 0) >= max_msgs ? max_msgs : undefined
}

/** A full history discards its oldest facts. This is not a problem, but shortens its reach. */
const aboutHistory = (survey: Survey): ReadonlyArray<Condition> => {
  const { at, space } = survey
  const { maxAge, name, space: its } = space.history
  const { oldestAt } = its
  const limit = reachedLimit(survey, name)
  if (oldestAt === null || (limit === undefined && !isUsed(its, full))) return []
  const asked = maxAge === undefined ? "" : ` instead of ${spanText(maxAge)}`
  const text = `${name} is full and drops its oldest facts: it goes back ${spanText(at - oldestAt)}${asked}, and nothing older can be audited`
  return [
    {
      code: "history-full",
      text:
        limit === undefined
          ? `${text}; raise \`petrel init --history-bytes\``
          : `${text}; raise the limit on its messages (max_msgs, ${countText(limit)}), which was set with another tool`
    }
  ]
}

/** Nothing else shows that dead letters are refused by such a limit. */
const aboutDeadLimit = (survey: Survey): ReadonlyArray<Condition> => {
  const name = survey.space.history.name.replace(/HISTORY$/, "DEAD")
  const limit = reachedLimit(survey, name)
  return conditionIf(
    limit !== undefined,
    "dead-letters-full",
    `${name} holds as many dead letters as a limit that was set with another tool allows (max_msgs, ${countText(limit ?? 0)}). Deliveries that end without success wait: make space with \`petrel dead discard\`, or raise that limit`
  )
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
          text: `the intake is ${usedText(incoming)} full (limit: ${bytesText(incoming.limitBytes ?? 0)}), and refuses webhooks and rows of outboxes once it is full: within some 10 s a worker removes messages that have become events (${incoming.notCopied === null ? "how many have not is not known" : `${countText(incoming.notCopied)} ${incoming.notCopied === 1 ? "has" : "have"} not`}); release or discard requests in quarantine (\`petrel quarantine list TENANT\`), or raise \`petrel init --intake-bytes\``
        }
      ]

/** An event stream without a limit may take the storage that the engine needs to continue. */
const aboutUnbounded = ({ space: { events } }: Survey): ReadonlyArray<Condition> =>
  events.space.bytes === null || events.space.limitBytes !== null
    ? []
    : [
        {
          code: "events-unbounded",
          text: `${events.name} has no limit: events can fill the broker's store, and then nothing is delivered; limit it to half of the store with \`petrel init --event-bytes\``
        }
      ]

/** Events are not routed while the queues are full: only what nobody delivers fills them. */
const aboutQueues = ({ space }: Survey): ReadonlyArray<Condition> => {
  const { bytes, limitBytes: limit } = space.queues
  return bytes === null || limit === null || bytes < limit * resumeBelowShare
    ? []
    : [
        {
          code: "queues-full",
          text: `queues take ${bytesText(bytes)} of ${bytesText(limit)} because no worker, or too few, deliver what is in them. While queues are full, no events are routed: start workers with the role \`deliver\`, or more of them (\`petrel workers\` shows partitions without one)`
        }
      ]
}

/** Nobody is held up by it, but who has his share gets dead letters. */
const aboutBacklogs = ({ space, waitingByTenant }: Survey): ReadonlyArray<Condition> => {
  const { bytes, limitBytes: maxBytes } = space.backlogs
  return bytes === null || maxBytes === null || !isCrowded({ bytes, maxBytes })
    ? []
    : [
        {
          code: "backlogs-crowded",
          text: `backlogs take ${bytesText(bytes)} of ${bytesText(maxBytes)}${mostOf([...(waitingByTenant ?? [])])}: each tenant now has an equal share, and each endpoint a part of it. A delivery beyond that becomes a dead letter (\`backlog-full\`): fix the receivers of the endpoints with the most waiting deliveries (\`petrel endpoint list TENANT\` shows them), end those of an endpoint with \`petrel endpoint disable\`, or raise \`petrel init --event-bytes\``
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
 * The broker's health and the streams' infos say nothing of it to a client. A stream without a leader,
 * or one that somebody has changed, may acknowledge nothing either, which is told of it already.
 */
const aboutDisk = ({ restricted = [], streams, writeErrors }: Survey): ReadonlyArray<Condition> => {
  const explained = new Set([
    ...streams.filter(({ state }) => state === "leaderless").map(({ name }) => name),
    ...restricted.filter(({ fields }) => fields.length > 0).map(({ name }) => name)
  ])
  const [first, ...others] = writeErrors
    .filter(({ reason, stream }) => reason !== undefined || !explained.has(stream))
    // One with a reason says the most.
    .toSorted((a, b) => Number(a.reason === undefined) - Number(b.reason === undefined))
  if (first === undefined) return []
  const { ms = 0, reason, stream } = first
  const further = others.length === 0 ? "" : `, nor for ${plural(others.length, "other stream")}`
  const found =
    reason === undefined
      ? `for ${spanText(ms)} the broker has acknowledged no message for ${stream}${further}: a write to its disk has failed, or Petrel's user may not publish there, as its log says`
      : `the broker's disk stores nothing more for ${stream} (${reason})${further}: publishers get no answer`
  return [
    {
      code: "disk-failed",
      text: `${found}; repair the disk or free space, then restart the broker, which does not try again by itself`
    }
  ]
}

/** What the broker's servers say of themselves. */
const aboutHealth = ({ health = [] }: Survey): Conditions => ({
  problems: health
    .filter(({ isWell }) => isWell === false)
    .map(({ says, server }) => ({
      code: "broker-unhealthy",
      text: `the server at ${server} reports that it is unhealthy (${plainText(says)}): look at its log; after a failed write it stores nothing in that stream until it has free space and is restarted`
    })),
  notices: health
    .filter(({ isWell }) => isWell === undefined)
    .map(({ says, server }) => ({
      code: "broker-health-unknown",
      text: `${server} does not report the broker's health (${plainText(says)}): start it with a monitoring port, or correct the address`
    }))
})

/** Returns the conditions of the space in the streams and in the store. */
export const storageConditions = (survey: Survey): Conditions => {
  const { account, at, dead, space } = survey
  const { events, ownEvents } = space
  const deadText = `the dead-letter stream is ${usedText(dead)} full${mostOf(Object.entries(dead.byTenant ?? {}))}. While it is full, deliveries that end without success wait: make space with \`petrel dead discard\` or \`petrel init --dead-bytes\``
  const storageText = `the broker's storage is ${usedText(account)} full. Once it is full, nothing is stored or delivered: raise the account's max_file`
  const bounded: ReadonlyArray<Bounded> = [
    { code: "events-full", text: fullEvents(at, events, "--event-bytes"), of: events.space },
    ...(ownEvents === undefined
      ? []
      : [
          {
            code: "events-full",
            text: fullEvents(at, ownEvents, "--tenant-bytes"),
            of: ownEvents.space
          }
        ]),
    ...fullTenants(at, space.tenantEvents ?? []),
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
      ...aboutDeadLimit(survey),
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
