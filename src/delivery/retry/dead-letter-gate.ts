import type { StreamInfo } from "@nats-io/jetstream"
import { Effect, Queue } from "effect"
import { Broker } from "../../broker/broker.ts"
import { logTransitions } from "../../broker/gate.ts"
import { keepGoing } from "../../broker/keep-going.ts"
import type { PubAck } from "../../broker/publication.ts"
import { PublishError } from "../../broker/publication.ts"
import type { DeadLetterUse } from "../../policy/storage-quotas.ts"
import { deadLetterQuota, isCrowded } from "../../policy/storage-quotas.ts"
import { elapsedMs } from "../../time/elapsed.ts"

/**
 * Interval at which the size of DEAD is read, ms: `limited` while DEAD is crowded or has refused a
 * dead letter, else `calm`.
 */
const readEveryMs = { limited: 2_000, calm: 5_000 }
/** Approximate size of a dead letter besides its body, bytes. */
const headerBytes = 600
/** Pause after DEAD refused a dead letter, ms: doubles from the first to the second. */
const closedMs = [2_000, 60_000] as const

const lookHowFull = "look how full the dead letters are"

/**
 * Returns the size of DEAD, and the count per tenant when DEAD is crowded, which it asks the leader
 * for.
 *
 * @param dead what the leader says of DEAD.
 */
export const deadLetterUseIn = Effect.fnUntraced(function* ({
  config,
  state
}: Pick<StreamInfo, "config" | "state">) {
  const { names, streamInfo } = yield* Broker
  const { bytes, messages } = state
  const use: DeadLetterUse = { bytes, messages, maxBytes: config.max_bytes, byTenant: undefined }
  if (!isCrowded(use)) return use
  const { state: counted } = yield* streamInfo(lookHowFull, names.dead, {
    subjects_filter: names.subjects.allDead
  })
  const byTenant = new Map<string, number>()
  for (const [subject, count] of Object.entries(counted.subjects ?? {})) {
    const tenant = subject.split(".").at(-2) ?? ""
    byTenant.set(tenant, (byTenant.get(tenant) ?? 0) + count)
  }
  return { ...use, byTenant } satisfies DeadLetterUse
})

const readDeadLetterUse = Effect.gen(function* () {
  const { names, streamInfo } = yield* Broker
  return yield* deadLetterUseIn(yield* streamInfo(lookHowFull, names.dead))
})

/** Why DEAD takes nothing for a while. */
interface StoreRefusal {
  readonly why: string
  /** Size of the refused dead letter, bytes. */
  readonly bytes: number
  readonly forMs: number
  /** Nothing is tried before this time, ms of `elapsedMs`. */
  until: number
  /** True where a later reading found DEAD full. */
  wasFull: boolean
}

/**
 * Admits dead letters to DEAD while there is space, and each tenant's within its quota. One for
 * each worker. It closes after a refusal, and opens when DEAD has space. Without it, each ended
 * delivery would try by itself, again and again.
 */
export class DeadLetterGate {
  /** Name of DEAD. */
  readonly #stream: string
  readonly #readings: Queue.Queue<void>
  readonly #listeners = new Set<() => void>()
  readonly #logged = logTransitions(
    "the dead-letter stream takes nothing: deliveries that have ended wait until it does",
    "the dead-letter stream takes dead letters again"
  )
  #use: DeadLetterUse | undefined
  /** Dead letters stored since the size of DEAD was read, by tenant, and their bytes in total. */
  #storedSince = new Map<string, number>()
  #bytesSince = 0
  #refusal: StoreRefusal | undefined

  /** Makes the gate, and reads the size of DEAD at intervals until the scope closes. */
  static readonly make = Effect.gen(function* () {
    const { names } = yield* Broker
    const gate = new DeadLetterGate(names.dead, yield* Queue.sliding<void>(1))
    const look = Effect.andThen(Effect.ignore(gate.#read), gate.#untilNextReading)
    yield* Effect.forkScoped(keepGoing("read the size of DEAD", look, readEveryMs.calm))
    return gate
  })

  private constructor(stream: string, readings: Queue.Queue<void>) {
    this.#stream = stream
    this.#readings = readings
  }

  /**
   * Stores a dead letter. Fails at once, as rejected, where DEAD is known to have no space for it.
   *
   * @param bytes size of its body.
   */
  store(
    tenant: string,
    bytes: number,
    publish: Effect.Effect<PubAck, PublishError>
  ): Effect.Effect<PubAck, PublishError> {
    return Effect.suspend(() => {
      if (this.#refusal !== undefined && this.#isClosed)
        return Effect.fail(this.#noSpace(this.#refusal.why))
      if (this.#isOverQuota(tenant))
        return Effect.fail(this.#noSpace(`${tenant} has its part of the dead letters`))
      return this.#logged(publish).pipe(
        Effect.tap(() => Effect.sync(() => this.#stored(tenant, bytes))),
        Effect.tapError((error) => Effect.sync(() => this.#failed(bytes, error)))
      )
    })
  }

  /** True where DEAD is known to have space. */
  get hasSpace(): boolean {
    return this.#use !== undefined && !this.#isClosed && !this.#isFull(this.#use)
  }

  /** Returns whether a dead letter of the tenant may be stored, as far as is known. */
  isOpen(tenant: string): boolean {
    return this.hasSpace && !this.#isOverQuota(tenant)
  }

  /** Calls the listener after each reading, until the returned function is called. */
  onReading(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  get #isClosed(): boolean {
    return this.#refusal !== undefined && elapsedMs() < this.#refusal.until
  }

  /** True where it has no space for the dead letter that it refused, or for any. */
  #isFull({ bytes, maxBytes }: DeadLetterUse): boolean {
    return maxBytes > 0 && bytes + headerBytes + (this.#refusal?.bytes ?? 0) >= maxBytes
  }

  #isOverQuota(tenant: string): boolean {
    const use = this.#use
    const quota = use === undefined ? undefined : deadLetterQuota(use, tenant)
    const count = (use?.byTenant?.get(tenant) ?? 0) + (this.#storedSince.get(tenant) ?? 0)
    return quota !== undefined && count >= quota
  }

  #noSpace(detail: string): PublishError {
    return new PublishError({ subject: this.#stream, reason: "rejected", code: 0, detail })
  }

  #stored(tenant: string, bytes: number): void {
    const use = this.#use
    this.#refusal = undefined
    this.#storedSince.set(tenant, (this.#storedSince.get(tenant) ?? 0) + 1)
    this.#bytesSince += bytes + headerBytes
    // DEAD becomes crowded: quotas apply, so the counts per tenant are read now.
    if (use === undefined || isCrowded(use)) return
    if (isCrowded({ ...use, bytes: use.bytes + this.#bytesSince }))
      Queue.offerUnsafe(this.#readings, undefined)
  }

  #failed(bytes: number, { detail, reason }: PublishError): void {
    if (reason !== "rejected") return
    // Other refused publishes were in flight at the same time.
    if (this.#isClosed) return
    const before = this.#refusal
    const forMs = before === undefined ? closedMs[0] : Math.min(2 * before.forMs, closedMs[1])
    this.#refusal = { why: detail, bytes, forMs, until: elapsedMs() + forMs, wasFull: false }
  }

  get #read() {
    return Effect.map(readDeadLetterUse, (use) => {
      this.#use = use
      this.#storedSince = new Map()
      this.#bytesSince = 0
      this.#reopen(use)
      for (const listener of this.#listeners) listener()
    })
  }

  get #untilNextReading() {
    return Effect.suspend(() => {
      const isCrowdedNow = this.#use !== undefined && isCrowded(this.#use)
      const isLimited = this.#refusal !== undefined || isCrowdedNow
      return Effect.race(
        Queue.take(this.#readings),
        Effect.sleep(isLimited ? readEveryMs.limited : readEveryMs.calm)
      )
    })
  }

  /** Ends a refusal where DEAD was full and has space now. */
  #reopen(use: DeadLetterUse): void {
    const refusal = this.#refusal
    if (refusal === undefined) return
    const isFull = this.#isFull(use)
    if (refusal.wasFull && !isFull) refusal.until = 0
    refusal.wasFull = isFull
  }
}

/**
 * What the owner of a partition knows of deliveries that have ended and wait for space in DEAD as
 * broker schedules.
 *
 * A delivery is noted once its schedule is stored, and forgotten when a scan begins that sees it:
 * the scan wakes it or notes it again. So none is forgotten that no scan has seen.
 */
export class AwaitingSpace {
  /** Tenants that have some. */
  readonly #tenants = new Set<string>()
  /** True where tenants that are not noted may have some: those that a former owner left. */
  #mayBeMore = true

  /** Notes that the schedule of one is stored. */
  note(tenant: string): void {
    this.#tenants.add(tenant)
  }

  /** Notes that a scan did not see all that there is. */
  noteUnseen(): void {
    this.#mayBeMore = true
  }

  /** True where some may go to DEAD now, as far as is known. */
  isDue(gate: Pick<DeadLetterGate, "hasSpace" | "isOpen">): boolean {
    if (!gate.hasSpace) return false
    return this.#mayBeMore || [...this.#tenants].some((tenant) => gate.isOpen(tenant))
  }

  /** Forgets them: a scan is about to begin. */
  forget(): void {
    this.#tenants.clear()
    this.#mayBeMore = false
  }
}
