import type { StoredMsg } from "@nats-io/jetstream"
import { Effect, Option } from "effect"
import { Broker } from "../../broker/broker.ts"
import { removeIf } from "../../broker/removal.ts"
import { seeStream } from "../../broker/scan.ts"
import { readEnded, readRecord, writeEnded } from "../../delivery/retry/retry-records.ts"
import type { Delivery, Progress } from "../../domain/delivery.ts"
import { deliveryHeaders, firstRound, roundKey } from "../../domain/delivery.ts"
import { endpointKey } from "../../domain/endpoint.ts"
import { eventName } from "../../domain/event.ts"
import type { Fact, Place } from "../../domain/fact.ts"
import { factResult, placeName, plannedOtherwise, successKinds } from "../../domain/fact.ts"
import { partitionOf } from "../../domain/names.ts"
import { decodeFact, progressAfter } from "../../history/delivery-facts.ts"
import { locate, roundKeyOf } from "../../history/locate.ts"
import { findPlans } from "../../history/plans.ts"
import { readLetterContents, redeliveredLetter } from "../../rounds/redeliver.ts"
import { readEventContents } from "../../rounds/replay.ts"
import { readTarget } from "../../rounds/round.ts"
import type { Manifest } from "./manifest.ts"

/*
 * Retries whose messages no copy holds. A delivery that failed after its queue and its backlog were
 * copied, and before the copy of the history began, waits in a message that came too late for them.
 * Neither the router nor a worker stores it again: for both, its attempt shows that the queue has it.
 * The copies may still hold the messages that it left: they are removed, as a worker would attempt it
 * there once more.
 */

/** Endpoints that are read, and messages that are stored or removed, at the same time. */
const maxConcurrent = 16

/** A delivery whose last attempt failed. */
interface Retry extends Pick<Delivery, "tenant" | "endpoint" | "eventSeq" | "eventAt" | "round"> {
  readonly deadline: number
  readonly from: Place
  readonly progress: Progress
}

/** When rounds began, and what has failed last, by endpoint and round. */
interface Attempted {
  readonly claimedAt: ReadonlyMap<string, number>
  readonly retries: ReadonlyMap<string, Retry>
}

const keyOf = (of: Pick<Delivery, "tenant" | "endpoint" | "eventSeq" | "eventAt" | "round">) =>
  `${endpointKey(of.tenant, of.endpoint)} ${roundKey(of)}`

const claimKinds = ["redelivered", "replayed"] as const
const kinds = [...claimKinds, ...successKinds, "attempt-failed", "dead-lettered"] as const

/** Adds what an attempt that failed tells to what is known of those before it. */
const retryAfter = (
  fact: Fact,
  of: Omit<Retry, "deadline" | "from" | "progress">,
  known?: Retry
) => {
  const { deadline, from, probe, reason } = fact
  // Another plan counts, and does not name the endpoint.
  if (deadline === undefined || from === undefined || reason === plannedOtherwise) return undefined
  const { firstAttemptAt, probes = 0 } = known?.progress ?? {}
  const probed = probes + (probe === true ? 1 : 0)
  const progress: Progress = {
    ...(firstAttemptAt === undefined ? {} : { firstAttemptAt }),
    ...progressAfter(fact),
    ...(probed === 0 ? {} : { probes: probed })
  }
  return { ...of, deadline, from, progress } satisfies Retry
}

/** Reads which deliveries were attempted while the backup was made, and have not ended. */
const readAttempted = Effect.fnUntraced(function* ({ historyFrom }: Manifest) {
  const { names } = yield* Broker
  const claimedAt = new Map<string, number>()
  const retries = new Map<string, Retry>()
  const subjects = kinds.map((kind) => names.subjects.fact("*", "*", factResult(kind), kind))
  yield* seeStream({ stream: names.history, subjects, fromSeq: historyFrom + 1 }, (message) => {
    const fact = Option.getOrUndefined(decodeFact(message.string()))
    const { eventAt, eventSeq, round = firstRound } = fact ?? {}
    if (fact === undefined || eventSeq === undefined || eventAt === undefined) return false
    const { at, endpoint, kind, tenant } = fact
    const of = { tenant, endpoint, eventSeq, eventAt, round }
    const key = keyOf(of)
    if (claimKinds.some((one) => one === kind)) claimedAt.set(key, at)
    else {
      const retry = kind === "attempt-failed" ? retryAfter(fact, of, retries.get(key)) : undefined
      if (retry === undefined) retries.delete(key)
      else retries.set(key, retry)
    }
    return false
  })
  // The router goes on with what has failed directly, once it comes to its event.
  for (const [key, { from }] of retries) if (from.stream === names.events) retries.delete(key)
  return { claimedAt, retries } satisfies Attempted
})

/** A message, or an entry of one, that a delivery had left by its last attempt. */
interface LeftBehind {
  readonly place: Place
  readonly deadline: number
}

/** What is in no copy, and what the copies hold of deliveries that had gone on. */
interface Compared {
  readonly missing: ReadonlyArray<Retry>
  readonly leftBehind: ReadonlyArray<LeftBehind>
}

/** Compares retries with the messages of queues and backlogs. */
const compare = Effect.fnUntraced(function* (
  retries: ReadonlyMap<string, Retry>,
  partitions: number
) {
  const missing = new Map(retries)
  const older: Array<{ readonly key: string; readonly retry: Retry; readonly place: Place }> = []
  if (retries.size === 0) return { missing: [], leftBehind: [] } satisfies Compared
  const endpoints = new Map(
    [...retries.values()].map(({ endpoint, tenant }) => [
      endpointKey(tenant, endpoint),
      { tenant, endpoint }
    ])
  )
  yield* locate(
    {
      within: { partitions },
      endpoints: [...endpoints.values()],
      places: ["queue", "schedules", "backlog"]
    },
    (sighting) => {
      const key = `${endpointKey(sighting.tenant, sighting.endpoint)} ${roundKeyOf(sighting)}`
      const retry = retries.get(key)
      if (retry === undefined || sighting.where === "history") return false
      // What was stored after the last attempt tells of it.
      if (sighting.attempts >= retry.progress.attempts) missing.delete(key)
      else older.push({ key, retry, place: sighting.place })
      return false
    }
  )
  const leftBehind: Array<LeftBehind> = []
  const judge = Effect.fnUntraced(function* ({ key, place, retry }: (typeof older)[number]) {
    const record = yield* readRecord(place)
    const isThere = placeName(place) === placeName(retry.from)
    // It waits where it failed, as was decided, or goes on from there.
    if (isThere && (record?.progress.attempts ?? 0) >= retry.progress.attempts) missing.delete(key)
    else leftBehind.push({ place, deadline: retry.deadline })
  })
  yield* Effect.forEach(older, judge, { concurrency: maxConcurrent, discard: true })
  return { missing: [...missing.values()], leftBehind } satisfies Compared
})

/** Removes what deliveries had left. Of a message with others, it is stored which have left it. */
const removeLeftBehind = Effect.fnUntraced(function* (leftBehind: ReadonlyArray<LeftBehind>) {
  const remove = Effect.fnUntraced(function* (of: ReadonlyArray<LeftBehind>) {
    const [first] = of
    if (first === undefined) return
    const { at, seq, stream } = first.place
    const entries = of.flatMap(({ place: { entry } }) => entry ?? [])
    const isIt = ({ time }: StoredMsg) => time.getTime() === at
    if (entries.length === 0) yield* removeIf("remove what a delivery left", stream, seq, isIt)
    else {
      const message = { stream, seq, at }
      const deadline = Math.max(...of.map((one) => one.deadline))
      yield* writeEnded(message, entries, deadline, yield* readEnded(message))
    }
  })
  const messages = Map.groupBy(leftBehind, ({ place: { at, seq, stream } }) =>
    placeName({ stream, seq, at })
  )
  yield* Effect.forEach(messages.values(), remove, { concurrency: maxConcurrent, discard: true })
})

/**
 * Stores the retries again whose messages no copy holds: those of deliveries that failed after their
 * queue and backlog were copied. Returns how many. One whose event is gone is left out, and is missing.
 */
export const restoreMissingRetries = Effect.fnUntraced(function* (manifest: Manifest) {
  const { partitions } = manifest
  const { names, publish } = yield* Broker
  const { claimedAt, retries } = yield* readAttempted(manifest)
  const { leftBehind, missing } = yield* compare(retries, partitions)
  const plans = yield* findPlans(missing.filter(({ round }) => round === firstRound))
  const groups = Map.groupBy(missing, ({ endpoint, tenant }) => endpointKey(tenant, endpoint))
  let stored = 0
  const store = Effect.fnUntraced(function* (
    { target }: Effect.Success<ReturnType<typeof readTarget>>,
    { from, ...retry }: Retry
  ) {
    const { endpoint, eventAt, round, tenant } = retry
    const dead = redeliveredLetter(round)
    const contents =
      dead === undefined
        ? yield* readEventContents(retry, target.forwards)
        : yield* readLetterContents(retry, { ...retry, dead })
    if (contents === undefined) return
    const { body, content, event, type } = contents
    const planned = plans
      .get(eventName(retry))
      ?.flatMap(({ plan }) => plan.endpoints)
      .find(({ id }) => round === firstRound && id === endpoint)
    const { generation, revision } = planned ?? target
    const began = round === firstRound ? eventAt : (claimedAt.get(keyOf(retry)) ?? eventAt)
    const origin = placeName(from)
    const of: Delivery = { ...retry, event, type, content, began, generation, revision, origin }
    const partition = partitionOf(tenant, endpoint, partitions)
    // Not the id of the message that it left: the broker would take this one for a repetition.
    const messageId = `${roundKey(of)}.${endpoint}.restored-${retry.progress.attempts}`
    yield* publish(
      names.subjects.delivery(partition, tenant, endpoint),
      body,
      deliveryHeaders(of, messageId)
    )
    stored++
  })
  for (const group of groups.values()) {
    const [{ endpoint = "", tenant = "" } = {}] = group
    const target = yield* readTarget(tenant, endpoint)
    yield* Effect.forEach(group, (retry) => store(target, retry), {
      concurrency: maxConcurrent,
      discard: true
    })
  }
  yield* removeLeftBehind(leftBehind)
  return stored
})
