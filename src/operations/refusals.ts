import { Schema } from "effect"
import { BrokerError } from "../broker/broker-error.ts"
import { TopologyError } from "../broker/installed.ts"
import { PublishError } from "../broker/publisher.ts"
import { CommandFailed } from "../cluster/command.ts"
import { type Invalid, NotNow } from "../domain/problem.ts"
import { EndpointChanged, EndpointExists, EndpointNotFound } from "../endpoints/endpoint-store.ts"
import { ChangeUnrecorded } from "../endpoints/settings-store.ts"
import type { SettingsUnreadable } from "../endpoints/stored-values.ts"
import { EndpointUnreadable } from "../endpoints/stored-values.ts"
import { NotQuarantined, NotReleasable } from "../intake/quarantine.ts"
import { SourceExists, SourceNotFound, SourceUnreadable } from "../intake/source-store.ts"
import { NotStored } from "../intake/store-incoming.ts"
import { LogUnavailable } from "../projection/delivery-log.ts"
import type { RoundsStopped } from "../rounds/rounds.ts"
import { Busy, type NotAllowed } from "./caller.ts"
import { DeadLettersNotFound } from "./dead-letters/dead-letter-selection.ts"
import { DeliveryNotFound } from "./deliveries/explain-delivery.ts"
import { EventConflict, type EventNotStored } from "./events/publish-events.ts"
import { JobNotFound, JobQuotaReached } from "./jobs/manage-jobs.ts"
import { AnswerNotKept, KeyInUse, KeyReused } from "./once/idempotency-key.ts"
import { EventNotKept } from "./replays/replay-events.ts"
import { NoLeader } from "./status/status-report.ts"
import { QuotaReached } from "./tenants/quota.ts"
import { TokenNotFound } from "./tokens/manage-tokens.ts"

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
  "revision-mismatch": [EndpointChanged, EndpointExists]
} as const
export type Refusal = keyof typeof refusals

/** Failures that any operation may have, because something is away. */
export const absences = [
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
