/*
 * `petrel/receiver`: takes each webhook once, of Petrel and of other senders. This file names all that programs may
 * import.
 */
export * from "../providers/providers.ts"
export type { Alert, AlertName } from "./alerts.ts"
export { type Entry, type EntryState, PermanentError } from "./entry.ts"
export type { InboxEvent } from "./inbox-event.ts"
export type { LogLine } from "./log.ts"
export { type Kept, type Receiver, receiver } from "./receiver.ts"
export type {
  OnceOptions,
  ProcessOptions,
  ReadableEvent,
  ReceiverSettings,
  Source,
  SourceOptions,
  StartOptions
} from "./settings.ts"
export type { ReceiverStats } from "./stats.ts"
export { type Store, StoreUnavailable } from "./store.ts"
export { memoryStore } from "./stores/memory.ts"
export { type MysqlConnection, type MysqlPool, mysqlStore } from "./stores/mysql.ts"
export { type NatsKv, natsKvStore } from "./stores/nats-kv.ts"
export { type PostgresTx, postgresStore, type SqlStoreOptions } from "./stores/postgres.ts"
export { type IoRedisClient, type NodeRedisClient, redisStore } from "./stores/redis.ts"
export { type SqliteClient, type SqliteStoreOptions, sqliteStore } from "./stores/sqlite.ts"
export type { Work } from "./works.ts"
