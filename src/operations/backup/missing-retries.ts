import { Effect, Option } from "effect"
import { Broker } from "../../broker/broker.ts"
import { seeStream } from "../../broker/scan.ts"
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
 * Retries whose messages no copy holds. A delivery that came into its queue after the queue's copy,
 * and failed before the copy of the history began, is open as that tells. Neither the router nor a
 * worker stores it again: for both, its attempt shows that the queue has it.
 */

/** Endpoints that are read, and messages that are stored, at the same time. */
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

/** Leaves those that no queue and no backlog holds. */
const missingOf = Effect.fnUntraced(function* (
  retries: ReadonlyMap<string, Retry>,
  partitions: number
) {
  const missing = new Map(retries)
  const endpoints = new Map(
    [...retries.values()].map(({ endpoint, tenant }) => [
      endpointKey(tenant, endpoint),
      { tenant, endpoint }
    ])
  )
  if (missing.size > 0)
    yield* locate(
      {
        within: { partitions },
        endpoints: [...endpoints.values()],
        places: ["queue", "schedules", "backlog"]
      },
      (sighting) => {
        missing.delete(`${endpointKey(sighting.tenant, sighting.endpoint)} ${roundKeyOf(sighting)}`)
        return missing.size === 0
      }
    )
  return [...missing.values()]
})

/**
 * Stores the retries again whose messages no copy holds: those of deliveries that came into a queue
 * after its copy. Returns how many. One whose event is gone is left out, and is missing.
 */
export const restoreMissingRetries = Effect.fnUntraced(function* (manifest: Manifest) {
  const { partitions } = manifest
  const { names, publish } = yield* Broker
  const { claimedAt, retries } = yield* readAttempted(manifest)
  const missing = yield* missingOf(retries, partitions)
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
    const messageId = `${roundKey(of)}.${endpoint}`
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
  return stored
})
