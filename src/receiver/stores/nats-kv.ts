import { randomUUID } from "node:crypto"
import { sha256 } from "../entry.ts"
import { unlessAborted, wallMs } from "../machine.ts"
import { type OnceOutcome, type Store, StoreUnavailable } from "../store.ts"

/** What the store uses of a bucket of `@nats-io/kv`. */
export interface NatsKv {
  get(key: string): Promise<{
    readonly operation: string
    readonly revision: number
    string(): string
  } | null>
  create(key: string, value: string): Promise<number>
  update(key: string, value: string, revision: number): Promise<number>
  /** `ttl`: how long the bucket keeps a value, in ms; 0 for ever. */
  status(): Promise<{ readonly bucket: string; readonly ttl: number }>
}

/*
 * The value of a key, by the clock of the process that wrote it, in ms:
 *
 *   claimed:<until>:<token>   its work is under way; from that time on, its process is taken for dead
 *   free                      its work failed: the next receipt may do it
 *   done:<until>              its work is done; remembered until then
 *
 * Each change names the revision that it replaces, so that of several processes one succeeds, whatever they have read.
 */
type State =
  | { readonly is: "none" | "free" }
  | { readonly is: "claimed" | "done"; readonly until: number }

const stateOf = (value: string): State => {
  const [, word, until] = /^(claimed|done):(\d+)/.exec(value) ?? []
  return word === "claimed" || word === "done" ? { is: word, until: Number(until) } : { is: "free" }
}

/** How much longer than its work may take an event is busy whose process has died, ms: clocks may differ, too. */
const spareMs = 30_000

/** Longest Retry-After of an event that is busy, ms. */
const busyMs = 10_000

/** Codes of JetStream for another revision than the one that was named. */
const isOutrun = (error: unknown): boolean => {
  const { code } = (error ?? {}) as { readonly code?: unknown }
  return code === 10_071 || code === 10_164
}

const keptInPlain = /^[-/_a-zA-Z0-9]{1,200}$/

const dayMs = 86_400_000

/**
 * Remembers the keys of events in a bucket of NATS: for `once` alone, and at least once, because the work's effects are
 * in another place. The bucket must keep values for as long as keys are to be remembered, or for ever.
 *
 * @param kv of `@nats-io/kv`, on the program's own connection.
 */
export const natsKvStore = (
  kv: NatsKv,
  { prefix = "inbox" }: { readonly prefix?: string } = {}
): Store<undefined> => {
  if (!/^[-_a-zA-Z0-9]+$/.test(prefix))
    throw new TypeError(`the prefix ${JSON.stringify(prefix)} must be letters, digits, - or _`)

  /** Names the errors of the broker for the receiver. */
  const asked = async <A>(asking: Promise<A>): Promise<A> => {
    try {
      return await asking
    } catch (error) {
      if (isOutrun(error)) throw error
      const text = error instanceof Error ? error.message : error
      throw new StoreUnavailable(`NATS: ${text}`, { cause: error })
    }
  }

  const nameOf = (source: string, key: string): string =>
    `${prefix}.${source.replaceAll(".", "=")}.${keptInPlain.test(key) ? key : `sha256=${sha256(key)}`}`

  const read = async (
    name: string
  ): Promise<{ readonly state: State; readonly revision: number }> => {
    const found = await asked(kv.get(name))
    return found === null || found.operation !== "PUT"
      ? { state: { is: "none" }, revision: 0 }
      : { state: stateOf(found.string()), revision: found.revision }
  }

  /** Replaces what was read. Returns the new revision; undefined if another process was faster. */
  const replace = async (
    name: string,
    value: string,
    revision: number
  ): Promise<number | undefined> => {
    try {
      return await asked(revision === 0 ? kv.create(name, value) : kv.update(name, value, revision))
    } catch (error) {
      if (isOutrun(error)) return undefined
      throw error
    }
  }

  /** Longest time for which the bucket is known to keep values, ms. */
  let kept = 0
  const checkKept = async (source: string, keepMs: number): Promise<void> => {
    if (keepMs <= kept) return
    const { bucket, ttl } = await asked(kv.status())
    if (ttl > 0 && ttl < keepMs)
      throw new StoreUnavailable(
        `the bucket ${bucket} forgets what is older than ${ttl} ms, and keys of ${source} are remembered for ${keepMs}: make it with a ttl of at least ${Math.ceil(keepMs / dayMs)} days, or none`
      )
    kept = ttl > 0 ? ttl : Number.POSITIVE_INFINITY
  }

  return {
    name: "NATS KV",
    guarantee: "at-least-once",
    queue: undefined,

    once: async (entry, work, { signal, withinMs }): Promise<OnceOutcome> => {
      await checkKept(entry.source, entry.keepMs)
      const name = nameOf(entry.source, entry.key)
      const { revision, state } = await read(name)
      const now = wallMs()
      if (state.is === "done" && state.until > now) return { outcome: "duplicate", receipts: 2 }
      if (state.is === "claimed" && state.until > now)
        return { outcome: "busy", retryAfterMs: Math.min(busyMs, state.until - now) }
      const until = Math.ceil(now + withinMs + spareMs)
      const claimed = await replace(name, `claimed:${until}:${randomUUID()}`, revision)
      if (claimed === undefined) return { outcome: "busy", retryAfterMs: 1_000 }
      try {
        await unlessAborted(work(undefined), signal)
      } catch (error) {
        // Where this fails, too, the claim ends.
        await replace(name, "free", claimed).catch(() => undefined)
        throw error
      }
      await replace(name, `done:${Math.ceil(wallMs() + entry.keepMs)}`, claimed)
      return { outcome: "done" }
    },

    known: async (source, keys) => {
      const known = new Set<string>()
      for (const key of keys) {
        const { state } = await read(nameOf(source, key))
        if (state.is === "done" && state.until > wallMs()) known.add(key)
      }
      return known
    },

    // The bucket removes what is older than it keeps values.
    prune: async () => 0,
    migrate: async () => undefined
  }
}
