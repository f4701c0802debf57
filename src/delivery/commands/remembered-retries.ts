import { Deferred, Effect, Exit } from "effect"
import type { Retried, RetryNow } from "../../cluster/command.ts"
import { Shares } from "../../policy/shares.ts"
import { timers } from "../../time/timers.ts"

/** How long a command is remembered after its end, ms: a job is taken over within some 10 s. */
const rememberMs = 60_000
/** Commands that are remembered in a partition, and those of one tenant. A job has one at most. */
const most = { ofAll: 64, ofOne: 16 } as const

interface Remembered {
  readonly tenant: string
  readonly endpoint: string
  /** Of the monotonic clock; undefined while it is carried out. */
  endedAt: number | undefined
  readonly answer: Deferred.Deferred<Retried, unknown>
}

/**
 * What became of the commands of jobs, for a while. A job whose console was killed before it stored
 * the answer asks again for the endpoint that it had asked for last: what the worker let go on at
 * the first time no longer waits, and only the first answer counts it.
 */
export class RememberedRetries {
  /** By tenant and job, the oldest first. */
  readonly #known = new Map<string, Remembered>()
  readonly #shares = new Shares(most.ofAll, most.ofOne)

  /** Carries a command out, unless its job has asked for the same before: then the answer is that one's. */
  once<R>(
    { endpoint, job, tenant }: RetryNow,
    carriedOut: Effect.Effect<Retried, unknown, R>
  ): Effect.Effect<Retried, unknown, R> {
    return Effect.suspend(() => {
      if (job === undefined) return carriedOut
      this.#forgetOld()
      const key = `${tenant} ${job}`
      const before = this.#known.get(key)
      if (before?.endpoint === endpoint) return Deferred.await(before.answer)
      this.#forget(key)
      const now: Remembered = {
        tenant,
        endpoint,
        endedAt: undefined,
        answer: Deferred.makeUnsafe<Retried, unknown>()
      }
      this.#remember(key, now)
      return Effect.onExit(carriedOut, (exit) =>
        Effect.sync(() => {
          Deferred.doneUnsafe(now.answer, exit)
          now.endedAt = timers.monotonicMs()
          // What has failed is tried again.
          if (Exit.isFailure(exit) && this.#known.get(key) === now) this.#forget(key)
        })
      )
    })
  }

  #remember(key: string, one: Remembered): void {
    const { tenant } = one
    if (!this.#shares.fits(tenant)) {
      const oldest = [...this.#known].find(([, known]) => known.tenant === tenant)
      if (oldest !== undefined) this.#forget(oldest[0])
    }
    if (this.#shares.take(tenant)) this.#known.set(key, one)
  }

  #forget(key: string): void {
    const known = this.#known.get(key)
    if (known === undefined) return
    this.#known.delete(key)
    this.#shares.give(known.tenant)
  }

  #forgetOld(): void {
    const since = timers.monotonicMs() - rememberMs
    for (const [key, { endedAt }] of this.#known)
      if (endedAt !== undefined && endedAt < since) this.#forget(key)
  }
}
