import { Effect, Queue } from "effect"
import { Broker } from "../../broker/connection.ts"
import { logTransitions } from "../../broker/gate.ts"
import type { PubAck } from "../../broker/publisher.ts"
import { PublishError } from "../../broker/publisher.ts"
import type { DeadLetterUse } from "../../policy/dead-letter-quota.ts"
import { deadLetterQuota, isCrowded } from "../../policy/dead-letter-quota.ts"
import { elapsedMs } from "../../time/elapsed.ts"

/**
 * Interval at which the size of DEAD is read, ms: `limited` while DEAD is crowded or a delivery
 * waits for space, else `calm`.
 */
const lookEveryMs = { limited: 2_000, calm: 5_000 }
/** Approximate size of a dead letter besides its body, bytes. */
const headerBytes = 600
/** Pause after DEAD refused a dead letter, ms: doubles from the first to the second. */
const closedMs = [2_000, 60_000] as const

/** Admits dead letters to DEAD while there is space, and each tenant's within its quota. */
export interface DeadLetterGate {
  /**
   * Stores a dead letter. Fails at once, as rejected, where DEAD is known to have no space for it.
   *
   * @param bytes size of its body.
   */
  readonly store: (
    tenant: string,
    bytes: number,
    publish: Effect.Effect<PubAck, PublishError>
  ) => Effect.Effect<PubAck, PublishError>
  /** Returns whether a dead letter of the tenant may be stored, as far as is known. */
  readonly isOpen: (tenant: string) => boolean
  /** Calls the listener when there may be space again, until the returned function is called. */
  readonly onRoom: (listener: () => void) => () => void
}

/** Reads the size of DEAD from its leader, and the count per tenant when DEAD is crowded. */
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
 * Makes the gate of one worker. It closes after a refusal, and opens when DEAD has space. Without
 * it, each ended delivery would try by itself, again and again.
 */
export const makeDeadLetterGate = Effect.gen(function* () {
  const { names } = yield* Broker
  const listeners = new Set<() => void>()
  const say = logTransitions(
    "the dead-letter stream takes nothing: deliveries that have ended wait until it does",
    "the dead-letter stream takes dead letters again"
  )
  let use: DeadLetterUse | undefined
  /** Dead letters stored since the size of DEAD was read, by tenant, and their bytes in total. */
  let storedSince = new Map<string, number>()
  let bytesSince = 0
  const looks = yield* Queue.sliding<void>(1)
  /**
   * The last refusal: the size of the dead letter, until when nothing is tried, and the pause (ms).
   */
  let refusal:
    | {
        readonly why: string
        readonly bytes: number
        readonly forMs: number
        until: number
        /** True where a later reading found DEAD full. */
        wasFull: boolean
      }
    | undefined
  /** True while a delivery waits because of the refusal. */
  let isWaitedFor = false
  /** Tenants with deliveries that wait because the tenant's quota is used up. */
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
      // DEAD becomes crowded: quotas apply, so the counts per tenant are read now.
      if (use === undefined || isCrowded(use)) return
      if (isCrowded({ ...use, bytes: use.bytes + bytesSince })) Queue.offerUnsafe(looks, undefined)
    })
  const failed = (bytes: number, { detail, reason }: PublishError) =>
    Effect.sync(() => {
      if (reason !== "rejected") return
      isWaitedFor = true
      // Other refused publishes were in flight at the same time.
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

  /** Notifies listeners if waiting deliveries may find space. */
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
