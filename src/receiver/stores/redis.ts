import { randomUUID } from "node:crypto"
import { unlessAborted } from "../machine.ts"
import { type OnceOutcome, type Store, StoreUnavailable } from "../store.ts"

/** What the store uses of `ioredis` and `iovalkey`. */
export interface IoRedisClient {
  call(command: string, ...values: Array<string | number>): Promise<unknown>
}

/** What the store uses of `redis`. */
export interface NodeRedisClient {
  sendCommand(values: Array<string>): Promise<unknown>
}

/*
 * A key is `p:<token>` while its work is under way, for the time of a lease, and `d` when it is done. Each script looks
 * at the key and changes it at once: a process whose lease is over can neither finish nor release what another has.
 */
const claimScript = `local v = redis.call('GET', KEYS[1])
if not v then redis.call('SET', KEYS[1], 'p:' .. ARGV[1], 'PX', ARGV[2]) return {'claimed', 0} end
if v == 'd' then return {'done', 0} end
return {'busy', redis.call('PTTL', KEYS[1])}`

const finishScript = `if redis.call('GET', KEYS[1]) == 'p:' .. ARGV[1] then
redis.call('SET', KEYS[1], 'd', 'PX', ARGV[2]) return 1 end return 0`

const releaseScript = `if redis.call('GET', KEYS[1]) == 'p:' .. ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`

/** How much longer than its work may take an event is busy whose process has died, ms. */
const spareMs = 30_000

/** Longest Retry-After of an event that is busy, ms: most work ends long before its lease. */
const busyMs = 10_000

/**
 * Remembers the keys of events in Redis or Valkey: for `once` alone, and at least once, because the work's effects are
 * in another place. Its memory must not be evicted (`maxmemory-policy noeviction`), and what it forgets is worked on again.
 *
 * @param client of `ioredis`, `iovalkey` or `redis`, connected.
 */
export const redisStore = (
  client: IoRedisClient | NodeRedisClient,
  { prefix = "petrel:inbox" }: { readonly prefix?: string } = {}
): Store<undefined> => {
  const send = async (command: string, ...values: Array<string>): Promise<unknown> => {
    try {
      return "sendCommand" in client && !("call" in client)
        ? await client.sendCommand([command, ...values])
        : await (client as IoRedisClient).call(command, ...values)
    } catch (error) {
      throw new StoreUnavailable(`Redis: ${error instanceof Error ? error.message : error}`, {
        cause: error
      })
    }
  }
  // The braces keep the keys of a source on one node of a cluster.
  const nameOf = (source: string, key: string) => `${prefix}:{${source}}:${key}`
  const run = (script: string, name: string, ...values: Array<string>) =>
    send("EVAL", script, "1", name, ...values)

  return {
    name: "Redis",
    guarantee: "at-least-once",
    queue: undefined,

    once: async (entry, work, { signal, withinMs }): Promise<OnceOutcome> => {
      const name = nameOf(entry.source, entry.key)
      const token = randomUUID()
      const claimed = await run(claimScript, name, token, `${Math.ceil(withinMs + spareMs)}`)
      const [state, left] = Array.isArray(claimed) ? claimed.map(String) : []
      if (state === "done") return { outcome: "duplicate", receipts: 2 }
      if (state !== "claimed")
        return { outcome: "busy", retryAfterMs: Math.min(busyMs, Math.max(1_000, Number(left))) }
      try {
        await unlessAborted(work(undefined), signal)
      } catch (error) {
        // Where this fails, too, the lease ends.
        await run(releaseScript, name, token).catch(() => undefined)
        throw error
      }
      await run(finishScript, name, token, `${Math.ceil(entry.keepMs)}`)
      return { outcome: "done" }
    },

    known: async (source, keys) => {
      const known = new Set<string>()
      for (const key of keys) if ((await send("GET", nameOf(source, key))) === "d") known.add(key)
      return known
    },

    // Redis removes what has expired by itself.
    prune: async () => 0,
    migrate: async () => undefined
  }
}
