import { Schema } from "effect"
import { BrokerError } from "../broker/broker-error.ts"
import { TopologyError } from "../broker/installed.ts"
import { PublishError } from "../broker/publication.ts"
import { CommandFailed } from "../cluster/command.ts"
import { type Invalid, NotNow, OtherRevision } from "../domain/problem.ts"
import type { QuotaName } from "../domain/settings/tenant-table.ts"
import { isToken } from "../domain/token.ts"
import { EndpointChanged, EndpointExists, EndpointNotFound } from "../endpoints/endpoint-store.ts"
import { ChangeUnrecorded } from "../endpoints/settings-store.ts"
import type { SettingsUnreadable } from "../endpoints/stored-values.ts"
import { EndpointUnreadable } from "../endpoints/stored-values.ts"
import { NotQuarantined, NotReleasable } from "../intake/quarantine.ts"
import { SourceExists, SourceNotFound, SourceUnreadable } from "../intake/source-store.ts"
import { NotStored } from "../intake/store-incoming.ts"
import { LogUnavailable } from "../projection/delivery-log.ts"
import type { RoundsStopped } from "../rounds/rounds.ts"
import { countText, plural } from "../text/quantities.ts"
import { Busy, type NotAllowed } from "./caller.ts"
import { AnswerNotKept, KeyInUse, KeyReused } from "./idempotency-key.ts"

/** What is asked for contradicts what is there. */
export class Contradiction extends Schema.TaggedError<Contradiction>()("Contradiction", {
  message: Schema.String
}) {}

/** This console has no log of deliveries, and knows of none. */
export class NoProjection extends Schema.TaggedError<NoProjection>()("NoProjection", {}) {
  override get message() {
    return "no projection runs, which the log of deliveries is read from: start the console with the role projection"
  }
}

/** Dead letters of these ids do not exist. */
export class DeadLettersNotFound extends Schema.TaggedError<DeadLettersNotFound>()(
  "DeadLettersNotFound",
  { ids: Schema.Array(Schema.Int) }
) {
  override get message() {
    const { ids } = this
    if (ids.length === 1)
      return `there is no dead letter ${ids[0]}: it was discarded, has become too old to be kept, or never existed`
    const more = ids.length > 10 ? ` and ${countText(ids.length - 10)} more` : ""
    return `there are no dead letters ${ids.slice(0, 10).join(", ")}${more}: they were discarded, have become too old to be kept, or never existed`
  }
}

/** The history has no delivery of this id. */
export class DeliveryNotFound extends Schema.TaggedError<DeliveryNotFound>()("DeliveryNotFound", {
  delivery: Schema.String,
  /** Why the endpoint was not sent the event, if it wanted it. */
  reason: Schema.optionalKey(Schema.String),
  /** The event is stored, and nothing is recorded of it yet. */
  isUnrouted: Schema.optionalKey(Schema.Literal(true)),
  /** What the log cannot know that was asked. */
  reach: Schema.optionalKey(Schema.String)
}) {
  override get message() {
    if (this.reason !== undefined)
      return `there was no delivery ${this.delivery}: its endpoint was not sent the event (${this.reason}), and \`petrel replay\` sends it`
    if (this.isUnrouted === true)
      return `nothing is recorded of the delivery ${this.delivery} yet: its event is stored, and either waits to be routed (\`petrel status\` says how many do), or its first attempt has no answer yet. Ask again in a few seconds`
    if (this.reach !== undefined)
      return `there is no delivery ${this.delivery} here: ${this.reach}. Its id is <event id>.<endpoint id>`
    return `the history has no delivery ${this.delivery}: its id is <event id>.<endpoint id>, as \`petrel history --event ID\` shows it. If the event has just been published, ask again in a second or two`
  }
}

/** The broker has another event of this id. */
export class EventConflict extends Schema.TaggedError<EventConflict>()("EventConflict", {
  id: Schema.String
}) {
  override get message() {
    return `another event already has the id ${this.id}, with another type or other bytes: give each event an id of its own`
  }
}

/** The broker did not store an event, or may not have. The message says what to do. */
export class EventNotStored extends Schema.TaggedError<EventNotStored>()("EventNotStored", {
  reason: Schema.Literals(["unknown", "no-stream", "full", "too-large", "failed"]),
  message: Schema.String
}) {}

/** There is no job of this id. */
export class JobNotFound extends Schema.TaggedError<JobNotFound>()("JobNotFound", {
  id: Schema.String
}) {
  override get message() {
    return `there is no job ${this.id}: it ended more than a week ago, or never existed`
  }
}

/** A tenant has as many jobs as it may have at once. */
export class JobQuotaReached extends Schema.TaggedError<JobQuotaReached>()("JobQuotaReached", {
  count: Schema.Int
}) {
  override get message() {
    return `${countText(this.count)} jobs wait or run already, which is the maximum: wait until one has ended, or cancel one`
  }
}

/** The event of this id was never stored, or is not kept any more. */
export class EventNotKept extends Schema.TaggedError<EventNotKept>()("EventNotKept", {
  tenant: Schema.String,
  event: Schema.String,
  /** What the log cannot know that was asked. */
  reach: Schema.optionalKey(Schema.String)
}) {
  override get message() {
    if (this.reach !== undefined)
      return `there is no event ${this.event} of ${this.tenant} here: ${this.reach}`
    return `there is no event ${this.event} of ${this.tenant}, or it is no longer kept: events are removed after a while (7 days by default); a dead letter keeps its body for longer, see \`petrel dead list\``
  }
}

/** This process has no connection to the broker, and makes one as soon as it can. */
export class BrokerAway extends Schema.TaggedError<BrokerAway>()("BrokerAway", {}) {
  override get message() {
    return "there is no connection to the broker: see whether it runs; as soon as it can be reached, it is connected to again"
  }
}

/** The broker answers no request about its streams, as where its servers cannot elect a leader. */
export class NoLeader extends Schema.TaggedError<NoLeader>()("NoLeader", {}) {
  override get message() {
    return "the broker does not answer requests about its streams, as when its cluster has no leader, so nothing is stored or delivered: more than half of its servers must run, and a server whose disk was full needs free space and a restart"
  }
}

const texts: Readonly<Record<QuotaName, readonly [what: string, flag: string]>> = {
  maxEndpoints: ["endpoint", "--max-endpoints"],
  maxTokens: ["token", "--max-tokens"]
}

/** A tenant has as many of something as it may have. */
export class QuotaReached extends Schema.TaggedError<QuotaReached>()("QuotaReached", {
  tenant: Schema.String,
  quota: Schema.Literals(["maxEndpoints", "maxTokens"]),
  most: Schema.Int,
  /** True for links and sessions of browsers, which are counted apart. */
  ofBrowsers: Schema.optionalKey(Schema.Literal(true))
}) {
  override get message() {
    const [what, flag] = texts[this.quota]
    const counted =
      this.ofBrowsers === true
        ? plural(this.most, "link or session of browsers", "links and sessions of browsers")
        : plural(this.most, what)
    const [whose, name] = isToken(this.tenant)
      ? [this.tenant, this.tenant]
      : ["the system", "--system"]
    return `${whose} has ${counted}, which is the maximum: remove some, or have an operator raise it (\`petrel tenant set ${name} ${flag} N\`)`
  }
}

/** There is no token of this id. */
export class TokenNotFound extends Schema.TaggedError<TokenNotFound>()("TokenNotFound", {
  id: Schema.String
}) {
  override get message() {
    return `there is no token ${this.id}: it was revoked, or never existed; \`petrel token list\` shows those that exist`
  }
}

/**
 * The failures that are a refusal, by what is wrong. An operation names those that it may have; of
 * one that is in several lists the first that it names counts.
 */
export const refusals = {
  "not-found": [
    EndpointNotFound,
    DeadLettersNotFound,
    DeliveryNotFound,
    EventNotKept,
    JobNotFound,
    NotQuarantined,
    SourceNotFound,
    TokenNotFound
  ],
  conflict: [
    AnswerNotKept,
    Contradiction,
    EndpointExists,
    EndpointUnreadable,
    EventConflict,
    JobQuotaReached,
    KeyInUse,
    NotNow,
    NotReleasable,
    NotStored,
    QuotaReached,
    SourceExists,
    SourceUnreadable
  ],
  "key-reused": [KeyReused],
  "revision-mismatch": [EndpointChanged, EndpointExists, OtherRevision]
} as const
export type Refusal = keyof typeof refusals

/** Failures that any operation may have, because something is away. */
export const absences = [
  BrokerAway,
  Busy,
  ChangeUnrecorded,
  CommandFailed,
  LogUnavailable,
  NoLeader,
  NoProjection
] as const
/** Failures of the broker. */
export const brokerFailures = [BrokerError, PublishError, TopologyError] as const

/** Failures that are defects to whoever asks: of Petrel, or of what is stored. */
type Defect = EndpointUnreadable | SettingsUnreadable | RoundsStopped | Schema.SchemaError

/** The failures that an operation may have which names some refusals. */
export type FailureOf<Named extends Refusal> =
  | Defect
  | Invalid
  | NotAllowed
  | EventNotStored
  | InstanceType<(typeof absences)[number]>
  | InstanceType<(typeof brokerFailures)[number]>
  | InstanceType<(typeof refusals)[Named][number]>
