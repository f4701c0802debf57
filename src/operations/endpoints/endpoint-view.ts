import { Duration, Schema } from "effect"
import type { EndpointNow } from "../../delivery/introspection/endpoint-activity.ts"
import { StandingAlert } from "../../domain/alert.ts"
import { Circuit } from "../../domain/circuit.ts"
import { PositiveDuration } from "../../domain/duration.ts"
import { circuitOf, Endpoint, Secret } from "../../domain/endpoint.ts"
import { CircuitState, Health } from "../../domain/health.ts"
import { present } from "../../domain/record.ts"
import { endpointSettings, mask } from "../../domain/settings/endpoint-table.ts"
import { maskedOf } from "../../domain/settings/setting.ts"
import { Timestamp } from "../../domain/timestamp.ts"
import type { StoredEndpoint } from "../../endpoints/endpoint-store.ts"
import { publicKeyOf } from "../../endpoints/signing.ts"
import { isRamping } from "../../policy/circuit.ts"
import { shareOf } from "../../text/quantities.ts"

/** Attempts within the last hour. */
export const LastHour = Schema.Struct({
  since: Timestamp.annotateKey({
    description: "Start of the count: later than an hour ago if the partition changed owner."
  }),
  attempts: Schema.Int.annotateKey({ description: "How many were made." }),
  delivered: Schema.Int.annotateKey({ description: "How many of them succeeded." }),
  successRate: Schema.NullOr(Schema.Number).annotateKey({
    description: "From 0 to 1; null without attempts."
  }),
  p50Ms: Schema.NullOr(Schema.Number).annotateKey({ description: "Duration of an attempt, ms." }),
  p95Ms: Schema.NullOr(Schema.Number).annotateKey({ description: "95% are not longer, ms." })
})
export type LastHour = typeof LastHour.Type

/** An endpoint's current activity. What only its partition's owner knows is null if none answers. */
export const ActivityView = Schema.Struct({
  partition: Schema.Int.annotateKey({ description: "The index of the partition." }),
  owner: Schema.NullOr(Schema.String).annotateKey({
    description: "The worker that owns the partition."
  }),
  inFlight: Schema.NullOr(Schema.Int).annotateKey({ description: "Requests that are under way." }),
  /** Deliveries by the place where they wait. Those in memory or in flight are in a stream, too. */
  waiting: Schema.Struct({
    memory: Schema.NullOr(Schema.Int).annotateKey({
      description: "Deliveries in its owner's memory."
    }),
    queue: Schema.Int.annotateKey({ description: "Deliveries in the queue." }),
    schedules: Schema.NullOr(Schema.Int).annotateKey({
      description: "Null if there are too many to count."
    }),
    backlog: Schema.Int.annotateKey({ description: "Deliveries that wait in backlogs." })
  }).annotateKey({ description: "What waits for it, by place; null if no owner answers." }),
  lastHour: Schema.NullOr(LastHour).annotateKey({
    description: "Attempts within the last hour; null if no owner answers."
  })
})
export type ActivityView = typeof ActivityView.Type

/** Returns an endpoint's current activity. */
export const activityView = ({ owner, partition, answer, waiting }: EndpointNow): ActivityView => ({
  partition,
  owner: owner ?? null,
  inFlight: answer?.inFlight ?? null,
  waiting: {
    memory: answer?.inLine ?? null,
    queue: waiting.queue,
    schedules: waiting.schedules ?? null,
    backlog: waiting.backlog
  },
  lastHour:
    answer === undefined
      ? null
      : {
          since: answer.since,
          attempts: answer.attempts,
          delivered: answer.delivered,
          successRate: shareOf(answer.delivered, answer.attempts),
          p50Ms: answer.p50Ms ?? null,
          p95Ms: answer.p95Ms ?? null
        }
})

const settings = Circuit.fields

/**
 * All settings of an endpoint's circuit, defaults filled in, and its state if that is known. Times
 * in ms since the epoch.
 */
export const CircuitView = Schema.Struct({
  state: Schema.optionalKey(CircuitState),
  since: Schema.optionalKey(Timestamp),
  nextProbeAt: Schema.optionalKey(Timestamp).annotateKey({
    description: "When the next probe may be sent. Absent for a closed circuit."
  }),
  probesSucceeded: Schema.optionalKey(Schema.Int).annotateKey({
    description: "Successful probes of a half-open circuit."
  }),
  lastProbe: Schema.optionalKey(Schema.String).annotateKey({
    description: "The delivery of the latest probe."
  }),
  why: Schema.optionalKey(Schema.String).annotateKey({ description: "Why it opened." }),
  ramping: Schema.optionalKey(Schema.Literal(true)).annotateKey({
    description: "The circuit has closed, and deliveries come back gradually."
  }),
  failures: settings.failures.schema,
  rate: settings.rate.schema,
  coolDown: PositiveDuration,
  maxCoolDown: PositiveDuration,
  successes: settings.successes.schema,
  onOpen: settings.onOpen.schema,
  giveUpAfter: PositiveDuration,
  onGiveUp: settings.onGiveUp.schema,
  onGone: settings.onGone.schema,
  permanentFailures: settings.permanentFailures.schema
})
export type CircuitView = typeof CircuitView.Type

/** An endpoint's failures, and when it may be sent to. Times in ms since the epoch. */
export const HealthView = Schema.Struct({
  failuresInRow: Health.fields.failuresInRow,
  permanentInRow: Health.fields.permanentInRow,
  failingSince: Health.fields.failingSince,
  giveUpAt: Health.fields.giveUpAt,
  notBefore: Health.fields.notBefore,
  lastStatus: Health.fields.lastStatus,
  lastError: Health.fields.lastError.annotateKey({ description: "The last error." })
})
export type HealthView = typeof HealthView.Type

const stateOf = (health: Health): Partial<CircuitView> => {
  const { lastProbe, since, state, successes, until = 0, why } = health.circuit
  return {
    state,
    ...(since === 0 ? {} : { since }),
    ...(state === "closed" ? {} : { nextProbeAt: Math.max(until, health.notBefore ?? 0) }),
    ...present({ probesSucceeded: successes, lastProbe, why }),
    ...(isRamping(health) ? { ramping: true } : {})
  }
}

/** Returns an endpoint's circuit, with its state if its health is given. */
export const circuitView = (endpoint: Endpoint, health: Health | undefined): CircuitView => {
  const { coolDown, giveUpAfter, maxCoolDown, rate, ...rest } = circuitOf(endpoint)
  return {
    ...(health === undefined ? {} : stateOf(health)),
    ...rest,
    rate: rate === undefined ? "none" : { ...rate, over: Duration.millis(rate.over) },
    coolDown: Duration.millis(coolDown),
    maxCoolDown: Duration.millis(maxCoolDown),
    giveUpAfter: Duration.millis(giveUpAfter)
  }
}

/** Returns an endpoint's health without the state of its circuit. */
const healthView = ({ circuit: _, generation: __, v: ___, ...rest }: Health): HealthView => rest

const { fields } = Endpoint

/** An endpoint's configuration. Secrets and the values of headers may be masked. */
export const EndpointView = Schema.Struct({
  ...fields,
  circuit: CircuitView,
  headers: Schema.Record(Schema.String, Schema.String),
  secrets: Schema.Array(Secret),
  publicKey: Schema.optionalKey(Schema.String).annotateKey({
    description: "With which receivers verify, if the scheme has one."
  }),
  revision: Schema.Int.annotateKey({ description: "The revision in the endpoints bucket." })
})
export type EndpointView = typeof EndpointView.Type

/** An endpoint's configuration and its health. */
export const EndpointHealthView = Schema.Struct({
  ...EndpointView.fields,
  health: HealthView.annotateKey({ description: "Its failures, and when it may be sent to." })
})
export type EndpointHealthView = typeof EndpointHealthView.Type

/** An endpoint in a list: its configuration and how it fares. */
export const ListedEndpoint = Schema.Struct({
  ...EndpointHealthView.fields,
  ...ActivityView.fields
})
export type ListedEndpoint = typeof ListedEndpoint.Type

/** An endpoint, and the alerts that are raised about it. */
export const EndpointDetail = Schema.Struct({
  ...ListedEndpoint.fields,
  forwards: Schema.Array(Schema.String).annotateKey({
    description: "Headers of the publisher that it gets: its tenant's, the system's, and its own."
  }),
  sharedHost: Schema.optionalKey(
    Schema.Struct({
      host: Schema.String.annotateKey({ description: "The host of its URL." }),
      tenantCap: Schema.optionalKey(Schema.Int).annotateKey({
        description: "Concurrent requests of all endpoints of the tenant."
      }),
      systemCap: Schema.optionalKey(Schema.Int).annotateKey({
        description: "The same of all endpoints of all tenants."
      })
    })
  ).annotateKey({
    description: "The host whose requests are capped over several endpoints. Absent without a cap."
  }),
  timeoutsCutTo: Schema.optionalKey(PositiveDuration),
  raised: Schema.Array(StandingAlert).annotateKey({
    description: "The alerts that are raised about it."
  })
})
export type EndpointDetail = typeof EndpointDetail.Type

/** Returns the public key for verification, if the scheme has one. */
const publicKey = ({ secrets, sign }: Endpoint): string | undefined => {
  const [newest] = secrets
  return sign === "standard-ed25519" && newest !== undefined ? publicKeyOf(newest.value) : undefined
}

/** Returns an endpoint's configuration; secrets and values of headers only with `reveal`. */
export const endpointView = (
  { endpoint, revision }: StoredEndpoint,
  reveal = false,
  health?: Health
): EndpointView => {
  const { secrets } = endpoint
  const key = publicKey(endpoint)
  return {
    ...endpoint,
    ...(reveal ? {} : maskedOf(endpointSettings, endpoint)),
    circuit: circuitView(endpoint, health),
    secrets: secrets.map((secret) => (reveal ? secret : { ...secret, value: mask })),
    ...(key === undefined ? {} : { publicKey: key }),
    revision
  }
}

/** Returns an endpoint's configuration and its health. */
export const endpointHealthView = (
  stored: StoredEndpoint,
  health: Health,
  reveal = false
): EndpointHealthView => ({
  ...endpointView(stored, reveal, health),
  health: healthView(health)
})
