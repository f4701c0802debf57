/*
 * `petrel/receiver`: takes each webhook once, of Petrel and of other senders. This file names all that programs may
 * import.
 */
export { discord } from "../providers/discord.ts"
export { genericHmac } from "../providers/generic-hmac.ts"
export { github } from "../providers/github.ts"
export { gitlab } from "../providers/gitlab.ts"
export { hubspot } from "../providers/hubspot.ts"
export { linear } from "../providers/linear.ts"
export { mailgun } from "../providers/mailgun.ts"
export { meta } from "../providers/meta.ts"
export { paddle } from "../providers/paddle.ts"
export { paypal } from "../providers/paypal.ts"
export type {
  Provider,
  ProviderEvent,
  Reading,
  ReceivedRequest,
  Verification
} from "../providers/provider.ts"
export { provider } from "../providers/providers.ts"
export { sendgrid } from "../providers/sendgrid.ts"
export { shopify } from "../providers/shopify.ts"
export { slack } from "../providers/slack.ts"
export { square } from "../providers/square.ts"
export { petrel, standardWebhooks } from "../providers/standard-webhooks.ts"
export { stripe } from "../providers/stripe.ts"
export { twilio } from "../providers/twilio.ts"
export { x } from "../providers/x.ts"
export { zoom } from "../providers/zoom.ts"
export type { Alert, AlertName } from "./alerts.ts"
export { type Entry, type EntryState, PermanentError } from "./entry.ts"
export type { InboxEvent } from "./inbox-event.ts"
export type { LogLine } from "./log.ts"
export { type Kept, type Receiver, receiver } from "./receiver.ts"
export type {
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
export { type PostgresTx, postgresStore, type SqlStoreOptions } from "./stores/postgres.ts"
export { type IoRedisClient, type NodeRedisClient, redisStore } from "./stores/redis.ts"
export { type SqliteClient, sqliteStore } from "./stores/sqlite.ts"
export type { Work } from "./works.ts"
