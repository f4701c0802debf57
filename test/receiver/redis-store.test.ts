import { Redis } from "ioredis"
import { Redis as Valkey } from "iovalkey"
import { createClient } from "redis"
import { afterAll, beforeAll } from "vitest"
import { redisStore } from "../../src/receiver/stores/redis.ts"
import { type RedisServer, startRedis, withoutRedis } from "../kit/redis-server.ts"
import { conformance } from "./conformance.ts"

let server: RedisServer | undefined
const portOf = (): number => {
  if (server === undefined) throw new Error("Redis was not started")
  return server.port
}
beforeAll(async () => {
  if (withoutRedis === undefined) server = await startRedis()
})
afterAll(() => server?.stop())

const counting = () => {
  const counters = new Map<string, number>()
  return {
    isBusyInTime: true,
    add: async (_: undefined, name: string) => {
      counters.set(name, (counters.get(name) ?? 0) + 1)
    },
    countOf: async (name: string) => counters.get(name) ?? 0
  }
}

conformance(
  "The keys in Redis through ioredis",
  withoutRedis,
  async () => {
    const client = new Redis(portOf())
    return { ...counting(), store: redisStore(client), close: async () => client.disconnect() }
  },
  false
)

conformance(
  "The keys in Redis through redis",
  withoutRedis,
  async () => {
    const client = await createClient({ url: `redis://127.0.0.1:${portOf()}` }).connect()
    const store = redisStore(client, { prefix: "by-redis" })
    return { ...counting(), store, close: async () => client.destroy() }
  },
  false
)

conformance(
  "The keys in Redis through iovalkey",
  withoutRedis,
  async () => {
    const client = new Valkey(portOf())
    const store = redisStore(client, { prefix: "by-iovalkey" })
    return { ...counting(), store, close: async () => client.disconnect() }
  },
  false
)
