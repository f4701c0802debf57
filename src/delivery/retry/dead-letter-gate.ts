import { Effect, Queue } from "effect"
import { Broker } from "../../broker/connection.ts"
import { elapsedMs } from "../../broker/elapsed.ts"
import { logTransitions } from "../../broker/gate.ts"
import type { PubAck } from "../../broker/publisher.ts"
import { PublishError } from "../../broker/publisher.ts"
import type { DeadLetterUse } from "../../policy/dead-letter-quota.ts"
import { deadLetterQuota, isCrowded } from "../../policy/dead-letter-quota.ts"

/** How often it is looked how full DEAD is: while somebody is kept from it or it is crowded, and otherwise, ms. */
const lookEveryMs = { limited: 2_000, calm: 5_000 }
/** What a dead letter takes besides its body, about, bytes. */
const headerBytes = 600
/** How long DEAD is left alone after a refusal, ms: doubles from the first to the second. */
const closedMs = [2_000, 60_000] as const

/** Lets dead letters into DEAD as far as there is room, and each tenant's as far as it has a part in it. */
export interface DeadLetterGate {
  /**
   * Stores a dead letter. Fails at once, as rejected, where there is known to be no room for it.
   *
   * @param bytes of its body.
   */
  readonly store: (
    tenant: string,
    bytes: number,
    publish: Effect.Effect<PubAck, PublishError>
  ) => Effect.Effect<PubAck, PublishError>
  /** Whether one of a tenant's may be stored, as far as is known. */
  readonly isOpen: (tenant: string) => boolean
  /** Calls the listener when there may be room again, until the returned function is called. */
  readonly onRoom: (listener: () => void) => () => void
}

/** How full DEAD is, as its leader knows it; with whose dead letters where that matters. */
export const readDeadLetterUse = Effect.gen(function* () {
  const { ask, jsm, names } = yield* Broker
  const look = (options?: { readonly subjects_filter: string }) =>
    ask("look how full the dead letters are", () => jsm.streams.info(names.dead, options))
  const { config, state } = yield* look()
  const { bytes, messages } = state
  const use: DeadLetterUse = { bytes, messages, maxBytes: config.max_bytes, byTenant: undefined }
  if (!isCrowded(use)) return use
  const { state: counted } = yield* look({ subjects_filter: names.subjects.allDead })
  const byTenant = new Map<string, number>()
  for (const [subject, count] of Object.entries(counted.subjects ?? {})) {
    const tenant = subject.split(".").at(-2) ?? ""
    byTenant.set(tenant, (byTenant.get(tenant) ?? 0) + count)
  }
  return { ...use, byTenant } satisfies DeadLetterUse
})

/**
 * Makes the gate of a worker. It closes at a refusal, and opens when there is room: without it each
 * delivery that has ended would try for itself, again and again.
 */
export const makeDeadLetterGate = Effect.gen(function* () {
  const { names } = yield* Broker
  const listeners = new Set<() => void>()
  const say = logTransitions(
    "the dead-letter stream takes nothing: deliveries that have ended wait until it does",
    "the dead-letter stream takes dead letters again"
  )
  let use: DeadLetterUse | undefined
  /** Stored since it was looked how full DEAD is, by tenant, and how many bytes in all. */
  let storedSince = new Map<string, number>()
  let bytesSince = 0
  const looks = yield* Queue.sliding<void>(1)
  /** DEAD refused a dead letter of so many bytes: until when nothing is tried, and for how long, ms. */
  let refusal:
    | {
        readonly why: string
        readonly bytes: number
        readonly forMs: number
        until: number
        /** That is the reason, as it was seen since. */
        wasFull: boolean
      }
    | undefined
  /** Somebody waits because of the refusal. */
  let isWaitedFor = false
  /** Tenants of which somebody waits because they have their part. */
  const limited = new Set<string>()

  const isClosed = (): boolean => refusal !== undefined && elapsedMs() < refusal.until
  const isOverQuota = (tenant: string): boolean => {
    const quota = use === undefined ? undefined : deadLetterQuota(use, tenant)
    const count = (use?.byTenant?.get(tenant) ?? 0) + (storedSince.get(tenant) ?? 0)
    return quota !== undefined && count >= quota
  }

  const noRoom = (detail: string) =>
    new PublishError({ subject: names.dead, reason: "rejected", code: 0, detail })

  const stored = (tenant: string, bytes: number) =>
    Effect.sync(() => {
      refusal = undefined
      storedSince.set(tenant, (storedSince.get(tenant) ?? 0) + 1)
      bytesSince += bytes + headerBytes
      // From now on it counts whose they are.
      if (use === undefined || isCrowded(use)) return
      if (isCrowded({ ...use, bytes: use.bytes + bytesSince })) Queue.offerUnsafe(looks, undefined)
    })
  const failed = (bytes: number, { detail, reason }: PublishError) =>
    Effect.sync(() => {
      if (reason !== "rejected") return
      isWaitedFor = true
      // Others that were under way say the same.
      if (isClosed()) return
      const forMs = refusal === undefined ? closedMs[0] : Math.min(2 * refusal.forMs, closedMs[1])
      refusal = { why: detail, bytes, forMs, until: elapsedMs() + forMs, wasFull: false }
    })

  const store: DeadLetterGate["store"] = (tenant, bytes, publish) =>
    Effect.suspend(() => {
      if (refusal !== undefined && isClosed()) {
        isWaitedFor = true
        return Effect.fail(noRoom(refusal.why))
      }
      if (isOverQuota(tenant)) {
        limited.add(tenant)
        return Effect.fail(noRoom(`${tenant} has its part of the dead letters`))
      }
      return say(publish).pipe(
        Effect.tap(() => stored(tenant, bytes)),
        Effect.tapError((error) => failed(bytes, error))
      )
    })

  /** Wakes those who wait, where that may help them. */
  const wake = ({ bytes, maxBytes }: DeadLetterUse) => {
    const isFull = maxBytes > 0 && bytes + headerBytes + (refusal?.bytes ?? 0) >= maxBytes
    if (refusal !== undefined) {
      if (refusal.wasFull && !isFull) refusal.until = 0
      refusal.wasFull = isFull
    }
    const hasRoom = isWaitedFor && !isClosed() && !isFull
    const freed = [...limited].filter((tenant) => !isOverQuota(tenant))
    if (!hasRoom && freed.length === 0) return
    if (hasRoom) isWaitedFor = false
    for (const tenant of freed) limited.delete(tenant)
    for (const listener of listeners) listener()
  }

  const look = Effect.gen(function* () {
    use = yield* readDeadLetterUse
    storedSince = new Map()
    bytesSince = 0
    wake(use)
  })
  const pause = Effect.suspend(() => {
    const isLimited = isWaitedFor || limited.size > 0 || (use !== undefined && isCrowded(use))
    return Effect.race(
      Queue.take(looks),
      Effect.sleep(isLimited ? lookEveryMs.limited : lookEveryMs.calm)
    )
  })
  yield* Effect.ignore(look).pipe(Effect.andThen(pause), Effect.forever, Effect.forkScoped)

  const gate: DeadLetterGate = {
    store,
    isOpen: (tenant) => !isClosed() && !isOverQuota(tenant),
    onRoom: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    }
  }
  return gate
})
