/* Made from the operations by `npm run reference`. */

/** An alert that is raised. */
export interface Alert {
  readonly id: string
  readonly name: "circuit-opened" | "endpoint-disabled" | "endpoint-suspended" | "dead-letters" | "success-low" | "success-critical" | "retries-high" | "permanent-high" | "attempts-high" | "median-slow" | "p99-slow" | "endpoint-not-found" | "status-repeated" | "failures-in-row" | "tenant-dead-letters" | "source-refusing" | "quarantined" | "provider-lost" | "events-unrouted" | "waiting-growing" | "circuits-open" | "deliveries-missing" | "disk-failed" | "system-dead-letters" | "outbox-stuck" | "outbox-set-aside" | "test"
  readonly about: "endpoint" | "tenant" | "system"
  readonly level: "warn" | "critical"
  readonly value?: number
  readonly threshold: number
  readonly unit: string
  readonly windowMs: number
  readonly raisedAt: string
  readonly replaces?: "circuit-opened" | "endpoint-disabled" | "endpoint-suspended" | "dead-letters" | "success-low" | "success-critical" | "retries-high" | "permanent-high" | "attempts-high" | "median-slow" | "p99-slow" | "endpoint-not-found" | "status-repeated" | "failures-in-row" | "tenant-dead-letters" | "source-refusing" | "quarantined" | "provider-lost" | "events-unrouted" | "waiting-growing" | "circuits-open" | "deliveries-missing" | "disk-failed" | "system-dead-letters" | "outbox-stuck" | "outbox-set-aside" | "test"
  readonly also?: ReadonlyArray<"circuit-opened" | "endpoint-disabled" | "endpoint-suspended" | "dead-letters" | "success-low" | "success-critical" | "retries-high" | "permanent-high" | "attempts-high" | "median-slow" | "p99-slow" | "endpoint-not-found" | "status-repeated" | "failures-in-row" | "tenant-dead-letters" | "source-refusing" | "quarantined" | "provider-lost" | "events-unrouted" | "waiting-growing" | "circuits-open" | "deliveries-missing" | "disk-failed" | "system-dead-letters" | "outbox-stuck" | "outbox-set-aside" | "test">
  readonly contact?: string
  readonly failuresInRow?: number
  readonly lastStatus?: number
  readonly status?: string
  readonly lastError?: string
  readonly lastDeadLetter?: {
    readonly delivery: string
    readonly type?: string
    readonly reason?: string
    readonly attempts: ReadonlyArray<{
      readonly attempt: number
      readonly at: string
      readonly durationMs?: number
      readonly status?: number
      readonly error?: "timeout" | "connect-timeout" | "refused" | "reset" | "unreachable" | "connection" | "dns" | "certificate" | "handshake" | "address" | "protocol" | "redirect" | "interrupted"
    }>
  }
  readonly currentValue?: number
  readonly tenant?: string
  readonly endpoint?: string
}

export interface AlertList {
  readonly alerts: ReadonlyArray<Alert>
}

/** Thresholds for alerts. One that is left out is that of the level above. */
export interface AlertThresholds {
  /** A warning where fewer deliveries than this succeed, percent. */
  readonly successWarnPercent?: "off" | number | undefined
  /** A critical alert where fewer deliveries than this succeed, percent. */
  readonly successCriticalPercent?: "off" | number | undefined
  /** A warning where the first attempt of more deliveries than this must be retried, percent. */
  readonly retriesPercent?: "off" | number | undefined
  /** A warning where more final answers than this are permanent failures, percent. */
  readonly permanentPercent?: "off" | number | undefined
  /** A warning where successful deliveries take more attempts than this on average. */
  readonly attemptsPerDelivery?: "off" | number | undefined
  /** A warning where half of the deliveries take longer than this from the event to success. */
  readonly medianTime?: "off" | string | undefined
  /** A warning where 1 of 100 deliveries takes longer than this from the event to success. */
  readonly p99Time?: "off" | string | undefined
  /** A warning at so many dead letters of one endpoint within the window. */
  readonly deadLetters?: "off" | number | undefined
  /** A warning at so many dead letters of all endpoints of a tenant within the window. */
  readonly tenantDeadLetters?: "off" | number | undefined
  /** A warning at so many sources of a tenant that refuse all that comes. */
  readonly sourcesRefusing?: "off" | number | undefined
  /** A warning at so many requests of a tenant in quarantine. */
  readonly quarantined?: "off" | number | undefined
  /** A warning at so many events of a tenant's sources that had not come in when these were last reconciled. */
  readonly providerLost?: "off" | number | undefined
  /** A warning at so many failed attempts in a row while the circuit is closed. */
  readonly failuresInRow?: "off" | number | undefined
  /** Whether an open circuit is an alert. */
  readonly circuitOpened?: "on" | "off" | undefined
  /** Whether a disabled endpoint is an alert. */
  readonly endpointDisabled?: "on" | "off" | undefined
  /** Whether a suspended endpoint is an alert. */
  readonly endpointSuspended?: "on" | "off" | undefined
  /** Whether as many answers with one status in a row as a retry policy names for it are an alert. */
  readonly statusInARow?: "on" | "off" | undefined
  /** The time over which all values are counted. */
  readonly window?: string | undefined
  /** With fewer deliveries than this, shares and times are not judged. */
  readonly samples?: number | undefined
}

/** When alerts are raised. */
export interface AlertThresholds_1 {
  readonly tenant?: string
  /** Of each alert; `off` and `on` for an alert as a whole, durations in words. */
  readonly thresholds: { readonly [name: string]: number | string }
  /** Whom to tell of endpoints without a contact of their own. */
  readonly contact?: string
  /** The tenant whose operational endpoints get the alerts about the system. */
  readonly systemAlertsTo?: string
  /** The names of those that were set here. */
  readonly set: ReadonlyArray<string>
  /** All alerts about the tenant and its endpoints were turned off. */
  readonly off?: true
}

export interface AttemptList {
  readonly attempts: ReadonlyArray<LoggedAttempt>
  /** The `cursor` of the next page; absent at the end. */
  readonly next?: string
  /** The `cursor` of the page before, of what is newer; absent on the first. */
  readonly previous?: string
  /** A page ends after 40 ms of searching. It then has what was found among all that is newer than this (of a previous page: older), and a cursor to go on with, however few that are. */
  readonly searchedUntil: string | null
  /** How far the log is behind what happens. */
  readonly lag: {
    readonly facts: number
    readonly ms: number
  }
}

/** Which events are audited. */
export interface Audit {
  /** Only those of this tenant. */
  readonly tenant?: string | undefined
  /** Stored then or later. */
  readonly since?: string | Date | undefined
  /** Stored then or earlier. */
  readonly until?: string | Date | undefined
}

/** How the delay before the next attempt grows with the number of attempts. */
export type Backoff = {
  readonly kind: "exponential"
  readonly base: string
  readonly factor: number
  readonly cap: string
} | {
  readonly kind: "linear"
  readonly step: string
  readonly cap: string
} | {
  readonly kind: "fixed"
  readonly delay: string
} | {
  readonly kind: "list"
  readonly delays: ReadonlyArray<string>
} | {
  readonly kind: "decorrelated"
  readonly base: string
  readonly cap: string
}

export interface BatchAnswer {
  /** As of a request for this event alone: 201 stored, 200 there already, 400 not valid, 409 another event has the id, 413 too large, 503 not known to be stored. */
  readonly status: 201 | 200 | 400 | 409 | 413 | 503
  /** Its id, which receivers get. */
  readonly id?: string
  /** Its sequence in the stream of events; absent where tenants have streams of their own. */
  readonly seq?: number
  /** Why it was not stored, and what to do. */
  readonly detail?: string
  /** What is wrong with it, field by field. */
  readonly errors?: ReadonlyArray<{
    readonly field: string
    readonly message: string
  }>
}

export interface BatchResult {
  /** How many were stored. */
  readonly stored: number
  /** How many were there already. */
  readonly duplicates: number
  /** How many were neither: see each. */
  readonly failed: number
  /** What became of each, in the order of the request. */
  readonly events: ReadonlyArray<BatchAnswer>
}

/** An endpoint after a change. */
export interface ChangedEndpoint {
  readonly v: 1
  /** Its tenant. */
  readonly tenant: string
  /** Its id within the tenant. */
  readonly id: string
  /** Made anew each time that an endpoint of this name is added. */
  readonly generation: string
  /** Where requests go: http or https. */
  readonly url: string
  /** Event types it wants, as NATS wildcards: `invoice.paid`, `invoice.*`, `>`. (Default: all) */
  readonly types: ReadonlyArray<string>
  /** How requests are signed: Standard Webhooks, Stripe's or GitHub's way, or not at all. (Default: standard) */
  readonly sign: "standard" | "standard-ed25519" | "stripe" | "github" | "none"
  /** Name of the signature header where `sign` is stripe. (Default: petrel-signature) */
  readonly signatureHeader?: string
  /** Other names for the headers id, type and timestamp. */
  readonly headerNames?: {
    /** Of the event's id. (Default: webhook-id) */
    readonly id?: string
    /** Of the event's type. (Default: webhook-event-type) */
    readonly type?: string
    /** Of the attempt's time, s since the epoch. (Default: webhook-timestamp) */
    readonly timestamp?: string
  }
  /** The name of a preset, or a policy of its own. (Default: default) */
  readonly retry: string | RetryPolicy
  /** Policies of some event types, by type filter. (Default: `retry` is the policy of all types) */
  readonly retryFor?: { readonly [name: string]: string | RetryPolicy }
  /** Concurrent requests, 1 to 1,000. (Default: 10) */
  readonly maxInFlight: number
  /** Lower the concurrency while it answers 429 or slows down. (Default: false) */
  readonly adapt?: boolean
  /** `slack`: bodies as incoming webhooks of chat tools take them; only where all its types are alerts. (Default: the event's bytes) */
  readonly format?: "slack"
  /** Requests per second, and the burst after a pause: as numbers, or in words such as `20/s burst 40`. (Default: no limit) */
  readonly rate?: RateLimit
  /** When it is left alone after failures, and when it is given up. (Default: {}, the defaults) */
  readonly circuit: {
    readonly state?: "closed" | "open" | "half-open"
    readonly since?: string
    readonly nextProbeAt?: string
    readonly probesSucceeded?: number
    readonly lastProbe?: string
    readonly why?: string
    readonly ramping?: true
    readonly failures: number
    readonly rate: "none" | {
      readonly percent: number
      readonly of: number
      readonly over: string
    }
    readonly coolDown: string
    readonly maxCoolDown: string
    readonly successes: number
    readonly onOpen: "backlog" | "dead-letter"
    readonly giveUpAfter: string
    readonly onGiveUp: "disable" | "suspend"
    readonly onGone: "disable" | "suspend"
    readonly permanentFailures: number
  }
  /** Time-out of an attempt, including redirects, such as "30 seconds". (Default: the policy's, else 30 seconds) */
  readonly timeout?: string
  /** Time limit of name look-up, TCP and TLS, such as "5 seconds". (Default: the policy's, else 10 seconds) */
  readonly connectTimeout?: string
  /** Redirects that are followed, 0 to 10. Without any, a 3xx is a permanent failure. (Default: 0) */
  readonly redirects: number
  /** Origins that redirects may lead to beside the URL's own, such as https://eu.example.com. (Default: none) */
  readonly redirectsTo?: ReadonlyArray<string>
  /** Headers that it gets with every request, without their values. */
  readonly headers: { readonly [name: string]: string }
  /** Headers of the publisher that it gets, by name: true adds one, null removes one. (Default: none) */
  readonly forwardHeaders?: ReadonlyArray<string>
  /** Whom to tell of problems. (Default: nobody) */
  readonly contact?: string
  /** What it is for: 1 to 500 characters on one line. (Default: none) */
  readonly description?: string
  /** What your own programs know it by, such as a customer's number: up to 20 entries, names of 64 bytes and values of 512. No place for credentials or what is to be erased: the history keeps them. (Default: {}) */
  readonly metadata?: { readonly [name: string]: string }
  /** When alerts about it are raised. (Default: {}, as its tenant has it) */
  readonly alerts?: "off" | AlertThresholds
  /** Its signing secrets, newest first, without their values. */
  readonly secrets: ReadonlyArray<{
    readonly value: string
    readonly createdAt: string
    readonly until?: string
  }>
  /** Since when and why it gets no events. */
  readonly disabled?: {
    readonly at: string
    readonly reason: string
    readonly by: string
  }
  /** Since when and why it was given up; its deliveries wait. */
  readonly suspended?: {
    readonly at: string
    readonly reason: string
    readonly by: string
  }
  /** Since when and why its deliveries are held back. */
  readonly paused?: {
    readonly at: string
    readonly by: string
    readonly reason?: string
    readonly lacksUrl?: true
  }
  /** When it was added. */
  readonly createdAt: string
  /** When it was changed last. */
  readonly updatedAt: string
  /** With which receivers verify, where the scheme has one. */
  readonly publicKey?: string
  /** Changes with every change; the ETag of the endpoint. */
  readonly revision: number
  /** The signing secret, if one was made. It is not shown again. */
  readonly secret?: string
  /** What is valid, but seldom intended. */
  readonly cautions: ReadonlyArray<string>
  /** The settings that differ from before. */
  readonly changed: ReadonlyArray<string>
}

/** Settings of a tenant, or of the system, after a change. */
export interface ChangedTenantSettings {
  readonly tenant?: string
  /** Concurrent requests of all its endpoints whose URLs have the same host name, 1 to 100,000. (Default: no limit) */
  readonly hostCap?: number
  /** Longest time-out of an attempt that its endpoints may have, 1 second to 24 hours, such as "15 minutes". A longer one that is stored is cut to it. (Default: the system's, else 5 minutes) */
  readonly maxTimeout?: string
  /** How many endpoints a tenant may have, 0 to 1,000,000. Those of the system hold for tenants without a number of their own. (Default: 1,000) */
  readonly maxEndpoints?: number
  /** How many tokens of the HTTP API, and as many links and sessions of browsers, a tenant may have, 0 to 1,000,000. Those of the system hold for tenants without a number of their own. (Default: 1,000) */
  readonly maxTokens?: number
  /** Headers of the publisher that all its endpoints get, as well as their own, by name: true adds one, null removes one. (Default: none) */
  readonly forwardHeaders: ReadonlyArray<string>
  readonly system?: {
    readonly hostCap?: number
    readonly maxTimeout?: string
    readonly maxEndpoints?: number
    readonly maxTokens?: number
    readonly forwardHeaders: ReadonlyArray<string>
  }
  readonly revision: number
  /** The settings that differ from before. */
  readonly changed: ReadonlyArray<string>
}

export interface Circuit {
  readonly failures?: number | undefined
  readonly rate?: "none" | {
    readonly percent: number
    readonly of: number
    readonly over: string
  } | undefined
  readonly coolDown?: string | undefined
  readonly maxCoolDown?: string | undefined
  readonly successes?: number | undefined
  readonly onOpen?: "backlog" | "dead-letter" | undefined
  readonly giveUpAfter?: string | undefined
  readonly permanentFailures?: number | undefined
  readonly onGiveUp?: "disable" | "suspend" | undefined
  readonly onGone?: "disable" | "suspend" | undefined
}

/** A token that was made. */
export interface CreatedToken {
  /** Its id, the middle part of the token. */
  readonly id: string
  /** Whose it is; `*`: of all tenants. */
  readonly tenant: "*" | string
  /** What it may do: endpoints:read, endpoints:write, secrets:read, events:publish, deliveries:read, payloads:read, dead:read, dead:write, replay:write, tokens:write, operator. */
  readonly scopes: ReadonlyArray<"endpoints:read" | "endpoints:write" | "secrets:read" | "events:publish" | "deliveries:read" | "payloads:read" | "dead:read" | "dead:write" | "replay:write" | "tokens:write" | "operator">
  /** What it is for. */
  readonly name?: string
  /** Requests per second. (Default: as the token it is made with, else 1,000) */
  readonly rate?: number
  /** When it expires. (Default: with the token it is made with, else never) */
  readonly expiresAt?: string
  readonly use?: "link" | "session"
  readonly opensUntil?: string
  readonly endpoint?: string
  readonly brand?: {
    /** What stands in place of Petrel's name. */
    readonly name?: string
    /** Of links and buttons: `#0b63ce`. */
    readonly colour?: string
    /** A data URL of an image. */
    readonly logo?: string
  }
  /** When it was made. */
  readonly createdAt: string
  /** Who made it. */
  readonly by: string
  /** The token that it was made with. What that one cannot do, it cannot; it is revoked with it. */
  readonly parent?: string
  /** The token itself. It is shown this once. */
  readonly token: string
}

/** A delivery that ended without success. */
export interface DeadLetter {
  /** Its number. */
  readonly id: number
  readonly tenant: string
  readonly endpoint: string
  /** The event's id. */
  readonly event: string
  readonly eventSeq: number
  readonly eventAt: string
  readonly type: string
  readonly round: string
  /** Why it ended without success. */
  readonly reason: "permanent" | "attempts" | "status-limit" | "deadline" | "endpoint-disabled" | "endpoint-removed" | "circuit-open" | "backlog-full" | "defect" | "event-gone" | "gone"
  readonly attempts: number
  readonly probes?: number
  readonly firstAttemptAt?: string
  readonly lastAttemptAt?: string
  readonly delayMs?: number
  readonly inARow?: {
    readonly status: string
    readonly attempts: number
    readonly since: string
  }
  readonly lastStatus?: number
  readonly lastErrorClass?: "timeout" | "connect-timeout" | "refused" | "reset" | "unreachable" | "connection" | "dns" | "certificate" | "handshake" | "address" | "protocol" | "redirect" | "interrupted"
  readonly lastError?: string
  readonly ends?: "permanent" | "attempts" | "status-limit" | "deadline" | "endpoint-disabled" | "endpoint-removed" | "circuit-open" | "backlog-full" | "defect" | "event-gone" | "gone"
  /** When it would have been given up. */
  readonly deadline: string
  /** When it ended. */
  readonly deadAt: string
  readonly origin?: string
  /** What came of sending it again. */
  readonly redelivered?: {
    readonly round: string
    readonly at: string
    readonly by?: string | null
    readonly outcome: "waiting" | "delivered" | "delivered-late" | "dead-lettered"
    readonly endedAt?: string | null
    readonly dead?: number | null
  }
  /** The receiver has it after all: a former owner recorded the success. */
  readonly deliveredLate?: {
    readonly at: string
    readonly worker?: string | null
  }
}

/** A dead letter: what was sent, and how each attempt went. */
export interface DeadLetterDetail {
  /** Its number. */
  readonly id: number
  readonly tenant: string
  readonly endpoint: string
  /** The event's id. */
  readonly event: string
  readonly eventSeq: number
  readonly eventAt: string
  readonly type: string
  readonly round: string
  /** Why it ended without success. */
  readonly reason: "permanent" | "attempts" | "status-limit" | "deadline" | "endpoint-disabled" | "endpoint-removed" | "circuit-open" | "backlog-full" | "defect" | "event-gone" | "gone"
  readonly attempts: number
  readonly probes?: number
  readonly firstAttemptAt?: string
  readonly lastAttemptAt?: string
  readonly delayMs?: number
  readonly inARow?: {
    readonly status: string
    readonly attempts: number
    readonly since: string
  }
  readonly lastStatus?: number
  readonly lastErrorClass?: "timeout" | "connect-timeout" | "refused" | "reset" | "unreachable" | "connection" | "dns" | "certificate" | "handshake" | "address" | "protocol" | "redirect" | "interrupted"
  readonly lastError?: string
  readonly ends?: "permanent" | "attempts" | "status-limit" | "deadline" | "endpoint-disabled" | "endpoint-removed" | "circuit-open" | "backlog-full" | "defect" | "event-gone" | "gone"
  /** When it would have been given up. */
  readonly deadline: string
  /** When it ended. */
  readonly deadAt: string
  readonly origin?: string
  /** What came of sending it again. */
  readonly redelivered?: {
    readonly round: string
    readonly at: string
    readonly by?: string | null
    readonly outcome: "waiting" | "delivered" | "delivered-late" | "dead-lettered"
    readonly endedAt?: string | null
    readonly dead?: number | null
  }
  /** The receiver has it after all: a former owner recorded the success. */
  readonly deliveredLate?: {
    readonly at: string
    readonly worker?: string | null
  }
  readonly began: string
  readonly headers: { readonly [name: string]: string }
  readonly bytes: number
  /** The body, if it is text, for tokens with the scope payloads:read. */
  readonly body?: string
  /** The body, if it is not text, for tokens with the scope payloads:read. */
  readonly bodyBase64?: string
  /** The facts of its attempts; what the receiver answered, for tokens with the scope payloads:read. */
  readonly history: ReadonlyArray<{ readonly [name: string]: unknown }>
}

export interface DeadLetterList {
  readonly deadLetters: ReadonlyArray<DeadLetter>
  /** The `cursor` of the next page; absent at the end. */
  readonly next?: string
  /** The `cursor` of the page before, of what is older; absent on the first. */
  readonly previous?: string
}

/** One event for one endpoint: its rounds and attempts, and why it waits. */
export interface Delivery {
  readonly delivery: string
  readonly tenant: string
  readonly endpoint: string
  readonly event?: string
  readonly eventSeq: number
  readonly type?: string
  readonly rounds: ReadonlyArray<{
    readonly round: string
    readonly begun: {
      readonly by: "routed" | "redelivered" | "replayed"
      readonly at: string
      readonly deadline?: string
    } | null
    readonly attempts: ReadonlyArray<{
      readonly number: number
      readonly at: string
      readonly isSuccess: boolean
      readonly isProbe?: true
      readonly status?: number
      readonly error?: {
        readonly class: "timeout" | "connect-timeout" | "refused" | "reset" | "unreachable" | "connection" | "dns" | "certificate" | "handshake" | "address" | "protocol" | "redirect" | "interrupted"
        readonly message: string
      } | null
      readonly durationMs?: number
      readonly nextAttemptAt?: string
      readonly worker?: string
      readonly connectMs?: number
      readonly firstByteMs?: number
      readonly response?: {
        readonly headers: { readonly [name: string]: string }
        readonly body: string
        readonly bytes: number
      }
      readonly redirects?: ReadonlyArray<{
        readonly status: number
        readonly to: string
      }>
    }>
    readonly lastAttempt: number
    readonly state: "open" | "delivered" | "dead-lettered" | "discarded"
    readonly end?: {
      readonly at: string
      readonly reason?: string
      readonly dead?: number
      readonly probes?: number
      readonly late?: true
    }
    readonly discardedAt?: string
    readonly waits?: {
      readonly until: string
      readonly by?: "nak" | "schedule"
    }
    readonly repeats: number
    readonly waitsIn?: {
      readonly stream: string
      readonly seq: number
      readonly deadline: string | null
      readonly position?: number
      readonly of?: number
    } | null
    readonly inMemory?: {
      readonly worker: string
      readonly mode: "waiting" | "deciding" | "sending" | "recording" | "released" | "returned" | "cancelled"
      readonly forMs: number
    }
    readonly holds?: ReadonlyArray<{
      readonly by: "missing" | "unreadable" | "event" | "dead-letters" | "endpoint-removed" | "endpoint-disabled" | "no-worker" | "time" | "paused" | "suspended" | "circuit" | "retry-after" | "cap" | "rate" | "host-cap" | "turn" | "answer" | "outcome"
      readonly says: string
      readonly until?: string
      readonly freedBy: string
    }>
  }>
  readonly lag?: {
    readonly facts: number
    readonly ms: number
  }
}

export interface DeliveryList {
  readonly deliveries: ReadonlyArray<LoggedDelivery>
  /** The `cursor` of the next page; absent at the end. */
  readonly next?: string
  /** The `cursor` of the page before, of what is newer; absent on the first. */
  readonly previous?: string
  /** A page ends after 40 ms of searching. It then has what was found among all that is newer than this (of a previous page: older), and a cursor to go on with, however few that are. */
  readonly searchedUntil: string | null
  /** How far the log is behind what happens. */
  readonly lag: {
    readonly facts: number
    readonly ms: number
  }
}

/** Why an endpoint gets nothing or fails, and what to do. */
export interface Diagnosis {
  readonly tenant: string
  readonly id: string
  readonly at: string
  readonly url: string
  readonly checks: ReadonlyArray<{
    readonly name: "state" | "worker" | "events" | "name" | "connection" | "certificate" | "failures" | "rate" | "circuit" | "waiting" | "dead letters"
    readonly result: "ok" | "unknown" | "warning" | "problem"
    readonly says: string
    readonly advice?: string
  }>
  readonly connection?: {
    readonly host: string
    readonly port: number
    readonly isSecure: boolean
    readonly lookupMs?: number
    readonly error?: {
      readonly class: "timeout" | "connect-timeout" | "refused" | "reset" | "unreachable" | "connection" | "dns" | "certificate" | "handshake" | "address" | "protocol" | "redirect" | "interrupted"
      readonly message: string
    }
    readonly refused: number
    readonly addresses: ReadonlyArray<{
      readonly address: string
      readonly durationMs: number
      readonly tls?: {
        readonly protocol: string
        readonly chain: ReadonlyArray<{
          readonly subject: string
          readonly issuer: string
          readonly validFrom: string
          readonly validUntil: string
        }>
        readonly distrust?: string
      }
      readonly error?: {
        readonly class: "timeout" | "connect-timeout" | "refused" | "reset" | "unreachable" | "connection" | "dns" | "certificate" | "handshake" | "address" | "protocol" | "redirect" | "interrupted"
        readonly message: string
      }
    }>
  }
  readonly advice: ReadonlyArray<string>
}

export interface DiscardedDeadLetter {
  readonly id: number
  readonly discarded: true
}

export interface DiscardedSeveral {
  readonly discarded: ReadonlyArray<{
    readonly number: number
    readonly tenant: string
    readonly source: string
    readonly provider: string
    readonly reason: "unreadable" | "id-collision" | "invalid"
    readonly problem: string
    readonly at: string
    readonly bytes: number
    readonly contentType: string
    readonly event?: string
    readonly type?: string
    readonly headers?: { readonly [name: string]: string }
    readonly body?: string
  }>
  readonly left: ReadonlyArray<{
    readonly number: number
    readonly problem: string
  }>
}

/** An endpoint: its settings, and its health. */
export interface Endpoint {
  readonly v: 1
  /** Its tenant. */
  readonly tenant: string
  /** Its id within the tenant. */
  readonly id: string
  /** Made anew each time that an endpoint of this name is added. */
  readonly generation: string
  /** Where requests go: http or https. */
  readonly url: string
  /** Event types it wants, as NATS wildcards: `invoice.paid`, `invoice.*`, `>`. (Default: all) */
  readonly types: ReadonlyArray<string>
  /** How requests are signed: Standard Webhooks, Stripe's or GitHub's way, or not at all. (Default: standard) */
  readonly sign: "standard" | "standard-ed25519" | "stripe" | "github" | "none"
  /** Name of the signature header where `sign` is stripe. (Default: petrel-signature) */
  readonly signatureHeader?: string
  /** Other names for the headers id, type and timestamp. */
  readonly headerNames?: {
    /** Of the event's id. (Default: webhook-id) */
    readonly id?: string
    /** Of the event's type. (Default: webhook-event-type) */
    readonly type?: string
    /** Of the attempt's time, s since the epoch. (Default: webhook-timestamp) */
    readonly timestamp?: string
  }
  /** The name of a preset, or a policy of its own. (Default: default) */
  readonly retry: string | RetryPolicy
  /** Policies of some event types, by type filter. (Default: `retry` is the policy of all types) */
  readonly retryFor?: { readonly [name: string]: string | RetryPolicy }
  /** Concurrent requests, 1 to 1,000. (Default: 10) */
  readonly maxInFlight: number
  /** Lower the concurrency while it answers 429 or slows down. (Default: false) */
  readonly adapt?: boolean
  /** `slack`: bodies as incoming webhooks of chat tools take them; only where all its types are alerts. (Default: the event's bytes) */
  readonly format?: "slack"
  /** Requests per second, and the burst after a pause: as numbers, or in words such as `20/s burst 40`. (Default: no limit) */
  readonly rate?: RateLimit
  /** When it is left alone after failures, and when it is given up. (Default: {}, the defaults) */
  readonly circuit: {
    readonly state?: "closed" | "open" | "half-open"
    readonly since?: string
    readonly nextProbeAt?: string
    readonly probesSucceeded?: number
    readonly lastProbe?: string
    readonly why?: string
    readonly ramping?: true
    readonly failures: number
    readonly rate: "none" | {
      readonly percent: number
      readonly of: number
      readonly over: string
    }
    readonly coolDown: string
    readonly maxCoolDown: string
    readonly successes: number
    readonly onOpen: "backlog" | "dead-letter"
    readonly giveUpAfter: string
    readonly onGiveUp: "disable" | "suspend"
    readonly onGone: "disable" | "suspend"
    readonly permanentFailures: number
  }
  /** Time-out of an attempt, including redirects, such as "30 seconds". (Default: the policy's, else 30 seconds) */
  readonly timeout?: string
  /** Time limit of name look-up, TCP and TLS, such as "5 seconds". (Default: the policy's, else 10 seconds) */
  readonly connectTimeout?: string
  /** Redirects that are followed, 0 to 10. Without any, a 3xx is a permanent failure. (Default: 0) */
  readonly redirects: number
  /** Origins that redirects may lead to beside the URL's own, such as https://eu.example.com. (Default: none) */
  readonly redirectsTo?: ReadonlyArray<string>
  /** Headers that it gets with every request, without their values. */
  readonly headers: { readonly [name: string]: string }
  /** Headers of the publisher that it gets, by name: true adds one, null removes one. (Default: none) */
  readonly forwardHeaders?: ReadonlyArray<string>
  /** Whom to tell of problems. (Default: nobody) */
  readonly contact?: string
  /** What it is for: 1 to 500 characters on one line. (Default: none) */
  readonly description?: string
  /** What your own programs know it by, such as a customer's number: up to 20 entries, names of 64 bytes and values of 512. No place for credentials or what is to be erased: the history keeps them. (Default: {}) */
  readonly metadata?: { readonly [name: string]: string }
  /** When alerts about it are raised. (Default: {}, as its tenant has it) */
  readonly alerts?: "off" | AlertThresholds
  /** Its signing secrets, newest first, without their values. */
  readonly secrets: ReadonlyArray<{
    readonly value: string
    readonly createdAt: string
    readonly until?: string
  }>
  /** Since when and why it gets no events. */
  readonly disabled?: {
    readonly at: string
    readonly reason: string
    readonly by: string
  }
  /** Since when and why it was given up; its deliveries wait. */
  readonly suspended?: {
    readonly at: string
    readonly reason: string
    readonly by: string
  }
  /** Since when and why its deliveries are held back. */
  readonly paused?: {
    readonly at: string
    readonly by: string
    readonly reason?: string
    readonly lacksUrl?: true
  }
  /** When it was added. */
  readonly createdAt: string
  /** When it was changed last. */
  readonly updatedAt: string
  /** With which receivers verify, where the scheme has one. */
  readonly publicKey?: string
  /** Changes with every change; the ETag of the endpoint. */
  readonly revision: number
  readonly health: {
    readonly failuresInRow: number
    readonly permanentInRow: number
    readonly failingSince?: string
    readonly giveUpAt?: string
    readonly notBefore?: string
    readonly lastStatus?: number
    readonly lastError?: string
  }
}

export interface EndpointChange {
  readonly tenant: string
  readonly id: string
  readonly revision: number
  readonly at: string
  readonly by?: string
  readonly change: "added" | "changed" | "removed" | "unreadable"
  readonly differences: ReadonlyArray<{
    readonly setting: string
    readonly from?: unknown
    readonly to?: unknown
  }>
}

/** An endpoint: its settings, its health, and what waits for it. */
export interface EndpointDetail {
  readonly v: 1
  /** Its tenant. */
  readonly tenant: string
  /** Its id within the tenant. */
  readonly id: string
  /** Made anew each time that an endpoint of this name is added. */
  readonly generation: string
  /** Where requests go: http or https. */
  readonly url: string
  /** Event types it wants, as NATS wildcards: `invoice.paid`, `invoice.*`, `>`. (Default: all) */
  readonly types: ReadonlyArray<string>
  /** How requests are signed: Standard Webhooks, Stripe's or GitHub's way, or not at all. (Default: standard) */
  readonly sign: "standard" | "standard-ed25519" | "stripe" | "github" | "none"
  /** Name of the signature header where `sign` is stripe. (Default: petrel-signature) */
  readonly signatureHeader?: string
  /** Other names for the headers id, type and timestamp. */
  readonly headerNames?: {
    /** Of the event's id. (Default: webhook-id) */
    readonly id?: string
    /** Of the event's type. (Default: webhook-event-type) */
    readonly type?: string
    /** Of the attempt's time, s since the epoch. (Default: webhook-timestamp) */
    readonly timestamp?: string
  }
  /** The name of a preset, or a policy of its own. (Default: default) */
  readonly retry: string | RetryPolicy
  /** Policies of some event types, by type filter. (Default: `retry` is the policy of all types) */
  readonly retryFor?: { readonly [name: string]: string | RetryPolicy }
  /** Concurrent requests, 1 to 1,000. (Default: 10) */
  readonly maxInFlight: number
  /** Lower the concurrency while it answers 429 or slows down. (Default: false) */
  readonly adapt?: boolean
  /** `slack`: bodies as incoming webhooks of chat tools take them; only where all its types are alerts. (Default: the event's bytes) */
  readonly format?: "slack"
  /** Requests per second, and the burst after a pause: as numbers, or in words such as `20/s burst 40`. (Default: no limit) */
  readonly rate?: RateLimit
  /** When it is left alone after failures, and when it is given up. (Default: {}, the defaults) */
  readonly circuit: {
    readonly state?: "closed" | "open" | "half-open"
    readonly since?: string
    readonly nextProbeAt?: string
    readonly probesSucceeded?: number
    readonly lastProbe?: string
    readonly why?: string
    readonly ramping?: true
    readonly failures: number
    readonly rate: "none" | {
      readonly percent: number
      readonly of: number
      readonly over: string
    }
    readonly coolDown: string
    readonly maxCoolDown: string
    readonly successes: number
    readonly onOpen: "backlog" | "dead-letter"
    readonly giveUpAfter: string
    readonly onGiveUp: "disable" | "suspend"
    readonly onGone: "disable" | "suspend"
    readonly permanentFailures: number
  }
  /** Time-out of an attempt, including redirects, such as "30 seconds". (Default: the policy's, else 30 seconds) */
  readonly timeout?: string
  /** Time limit of name look-up, TCP and TLS, such as "5 seconds". (Default: the policy's, else 10 seconds) */
  readonly connectTimeout?: string
  /** Redirects that are followed, 0 to 10. Without any, a 3xx is a permanent failure. (Default: 0) */
  readonly redirects: number
  /** Origins that redirects may lead to beside the URL's own, such as https://eu.example.com. (Default: none) */
  readonly redirectsTo?: ReadonlyArray<string>
  /** Headers that it gets with every request, without their values. */
  readonly headers: { readonly [name: string]: string }
  /** Headers of the publisher that it gets, by name: true adds one, null removes one. (Default: none) */
  readonly forwardHeaders?: ReadonlyArray<string>
  /** Whom to tell of problems. (Default: nobody) */
  readonly contact?: string
  /** What it is for: 1 to 500 characters on one line. (Default: none) */
  readonly description?: string
  /** What your own programs know it by, such as a customer's number: up to 20 entries, names of 64 bytes and values of 512. No place for credentials or what is to be erased: the history keeps them. (Default: {}) */
  readonly metadata?: { readonly [name: string]: string }
  /** When alerts about it are raised. (Default: {}, as its tenant has it) */
  readonly alerts?: "off" | AlertThresholds
  /** Its signing secrets, newest first, without their values. */
  readonly secrets: ReadonlyArray<{
    readonly value: string
    readonly createdAt: string
    readonly until?: string
  }>
  /** Since when and why it gets no events. */
  readonly disabled?: {
    readonly at: string
    readonly reason: string
    readonly by: string
  }
  /** Since when and why it was given up; its deliveries wait. */
  readonly suspended?: {
    readonly at: string
    readonly reason: string
    readonly by: string
  }
  /** Since when and why its deliveries are held back. */
  readonly paused?: {
    readonly at: string
    readonly by: string
    readonly reason?: string
    readonly lacksUrl?: true
  }
  /** When it was added. */
  readonly createdAt: string
  /** When it was changed last. */
  readonly updatedAt: string
  /** With which receivers verify, where the scheme has one. */
  readonly publicKey?: string
  /** Changes with every change; the ETag of the endpoint. */
  readonly revision: number
  readonly health: {
    readonly failuresInRow: number
    readonly permanentInRow: number
    readonly failingSince?: string
    readonly giveUpAt?: string
    readonly notBefore?: string
    readonly lastStatus?: number
    readonly lastError?: string
  }
  readonly partition: number
  readonly owner: string | null
  readonly inFlight: number | null
  readonly waiting: {
    readonly memory: number | null
    readonly queue: number
    readonly schedules: number | null
    readonly backlog: number
  }
  readonly lastHour: {
    readonly since: string
    readonly attempts: number
    readonly delivered: number
    readonly successRate: number | null
    readonly p50Ms: number | null
    readonly p95Ms: number | null
  } | null
  readonly forwards: ReadonlyArray<string>
  readonly sharedHost?: {
    readonly host: string
    readonly tenantCap?: number
    readonly systemCap?: number
  }
  readonly timeoutsCutTo?: string
  readonly raised: ReadonlyArray<{
    readonly id: string
    readonly name: "circuit-opened" | "endpoint-disabled" | "endpoint-suspended" | "dead-letters" | "success-low" | "success-critical" | "retries-high" | "permanent-high" | "attempts-high" | "median-slow" | "p99-slow" | "endpoint-not-found" | "status-repeated" | "failures-in-row" | "tenant-dead-letters" | "source-refusing" | "quarantined" | "provider-lost" | "events-unrouted" | "waiting-growing" | "circuits-open" | "deliveries-missing" | "disk-failed" | "system-dead-letters" | "outbox-stuck" | "outbox-set-aside" | "test"
    readonly about: "endpoint" | "tenant" | "system"
    readonly level: "warn" | "critical"
    readonly value?: number
    readonly threshold: number
    readonly unit: string
    readonly windowMs: number
    readonly raisedAt: string
    readonly replaces?: "circuit-opened" | "endpoint-disabled" | "endpoint-suspended" | "dead-letters" | "success-low" | "success-critical" | "retries-high" | "permanent-high" | "attempts-high" | "median-slow" | "p99-slow" | "endpoint-not-found" | "status-repeated" | "failures-in-row" | "tenant-dead-letters" | "source-refusing" | "quarantined" | "provider-lost" | "events-unrouted" | "waiting-growing" | "circuits-open" | "deliveries-missing" | "disk-failed" | "system-dead-letters" | "outbox-stuck" | "outbox-set-aside" | "test"
    readonly also?: ReadonlyArray<"circuit-opened" | "endpoint-disabled" | "endpoint-suspended" | "dead-letters" | "success-low" | "success-critical" | "retries-high" | "permanent-high" | "attempts-high" | "median-slow" | "p99-slow" | "endpoint-not-found" | "status-repeated" | "failures-in-row" | "tenant-dead-letters" | "source-refusing" | "quarantined" | "provider-lost" | "events-unrouted" | "waiting-growing" | "circuits-open" | "deliveries-missing" | "disk-failed" | "system-dead-letters" | "outbox-stuck" | "outbox-set-aside" | "test">
    readonly contact?: string
    readonly failuresInRow?: number
    readonly lastStatus?: number
    readonly status?: string
    readonly lastError?: string
    readonly lastDeadLetter?: {
      readonly delivery: string
      readonly type?: string
      readonly reason?: string
      readonly attempts: ReadonlyArray<{
        readonly attempt: number
        readonly at: string
        readonly durationMs?: number
        readonly status?: number
        readonly error?: "timeout" | "connect-timeout" | "refused" | "reset" | "unreachable" | "connection" | "dns" | "certificate" | "handshake" | "address" | "protocol" | "redirect" | "interrupted"
      }>
    }
    readonly currentValue?: number
  }>
}

export interface EndpointHistory {
  readonly changes: ReadonlyArray<EndpointChange>
  /** The `cursor` of the next page; absent at the end. */
  readonly next?: string
}

export interface EndpointList {
  readonly endpoints: ReadonlyArray<Endpoint>
  /** The `cursor` of the next page; absent at the end. */
  readonly next?: string
}

/** A change of an endpoint's settings: what is left out stays as it is, null removes a setting. */
export interface EndpointPatch {
  /** Where requests go: http or https. */
  readonly url?: string | undefined
  /** Event types it wants, as NATS wildcards: `invoice.paid`, `invoice.*`, `>`. (Default: all) */
  readonly types?: ReadonlyArray<string> | undefined
  /** How requests are signed: Standard Webhooks, Stripe's or GitHub's way, or not at all. (Default: standard) */
  readonly sign?: "standard" | "standard-ed25519" | "stripe" | "github" | "none" | undefined
  /** Name of the signature header where `sign` is stripe. (Default: petrel-signature) */
  readonly signatureHeader?: string | undefined
  /** Other names for the headers id, type and timestamp. */
  readonly headerNames?: {
    /** Of the event's id. (Default: webhook-id) */
    readonly id?: string | null | undefined
    /** Of the event's type. (Default: webhook-event-type) */
    readonly type?: string | null | undefined
    /** Of the attempt's time, s since the epoch. (Default: webhook-timestamp) */
    readonly timestamp?: string | null | undefined
  } | undefined
  /** The name of a preset, or a policy of its own. (Default: default) */
  readonly retry?: string | RetryPolicy | undefined
  /** Policies of some event types, by type filter. (Default: `retry` is the policy of all types) */
  readonly retryFor?: { readonly [name: string]: string | RetryPolicy | null } | undefined
  /** Concurrent requests, 1 to 1,000. (Default: 10) */
  readonly maxInFlight?: number | undefined
  /** Lower the concurrency while it answers 429 or slows down. (Default: false) */
  readonly adapt?: boolean | undefined
  /** `slack`: bodies as incoming webhooks of chat tools take them; only where all its types are alerts. (Default: the event's bytes) */
  readonly format?: "slack" | null | undefined
  /** Requests per second, and the burst after a pause: as numbers, or in words such as `20/s burst 40`. (Default: no limit) */
  readonly rate?: RateLimit | RateInWords | null | undefined
  /** When it is left alone after failures, and when it is given up. (Default: {}, the defaults) */
  readonly circuit?: Circuit | undefined
  /** Time-out of an attempt, including redirects, such as "30 seconds". (Default: the policy's, else 30 seconds) */
  readonly timeout?: string | null | undefined
  /** Time limit of name look-up, TCP and TLS, such as "5 seconds". (Default: the policy's, else 10 seconds) */
  readonly connectTimeout?: string | null | undefined
  /** Redirects that are followed, 0 to 10. Without any, a 3xx is a permanent failure. (Default: 0) */
  readonly redirects?: number | undefined
  /** Origins that redirects may lead to beside the URL's own, such as https://eu.example.com. (Default: none) */
  readonly redirectsTo?: ReadonlyArray<string> | null | undefined
  /** Headers that it gets with every request. Their values are not shown again. */
  readonly headers?: { readonly [name: string]: string | null } | undefined
  /** Headers of the publisher that it gets, by name: true adds one, null removes one. (Default: none) */
  readonly forwardHeaders?: { readonly [name: string]: true | null } | undefined
  /** Whom to tell of problems. (Default: nobody) */
  readonly contact?: string | null | undefined
  /** What it is for: 1 to 500 characters on one line. (Default: none) */
  readonly description?: string | null | undefined
  /** What your own programs know it by, such as a customer's number: up to 20 entries, names of 64 bytes and values of 512. No place for credentials or what is to be erased: the history keeps them. (Default: {}) */
  readonly metadata?: { readonly [name: string]: string | null } | undefined
  /** When alerts about it are raised. (Default: {}, as its tenant has it) */
  readonly alerts?: "off" | AlertThresholds | undefined
  /** It gets its tenant's alerts as events, too. (Default: false) */
  readonly operational?: boolean | undefined
  /** The signing secret, which replaces all it has. (Default: a new one, which is shown) */
  readonly secret?: string | undefined
}

/** The secrets of an endpoint, for callers who may see them. */
export interface EndpointSecrets {
  readonly secrets: ReadonlyArray<{
    readonly value: string
    readonly createdAt: string
    readonly until?: string
  }>
  readonly headers: { readonly [name: string]: string }
}

/** An endpoint after a change of its state. */
export interface EndpointState {
  readonly v: 1
  /** Its tenant. */
  readonly tenant: string
  /** Its id within the tenant. */
  readonly id: string
  /** Made anew each time that an endpoint of this name is added. */
  readonly generation: string
  /** Where requests go: http or https. */
  readonly url: string
  /** Event types it wants, as NATS wildcards: `invoice.paid`, `invoice.*`, `>`. (Default: all) */
  readonly types: ReadonlyArray<string>
  /** How requests are signed: Standard Webhooks, Stripe's or GitHub's way, or not at all. (Default: standard) */
  readonly sign: "standard" | "standard-ed25519" | "stripe" | "github" | "none"
  /** Name of the signature header where `sign` is stripe. (Default: petrel-signature) */
  readonly signatureHeader?: string
  /** Other names for the headers id, type and timestamp. */
  readonly headerNames?: {
    /** Of the event's id. (Default: webhook-id) */
    readonly id?: string
    /** Of the event's type. (Default: webhook-event-type) */
    readonly type?: string
    /** Of the attempt's time, s since the epoch. (Default: webhook-timestamp) */
    readonly timestamp?: string
  }
  /** The name of a preset, or a policy of its own. (Default: default) */
  readonly retry: string | RetryPolicy
  /** Policies of some event types, by type filter. (Default: `retry` is the policy of all types) */
  readonly retryFor?: { readonly [name: string]: string | RetryPolicy }
  /** Concurrent requests, 1 to 1,000. (Default: 10) */
  readonly maxInFlight: number
  /** Lower the concurrency while it answers 429 or slows down. (Default: false) */
  readonly adapt?: boolean
  /** `slack`: bodies as incoming webhooks of chat tools take them; only where all its types are alerts. (Default: the event's bytes) */
  readonly format?: "slack"
  /** Requests per second, and the burst after a pause: as numbers, or in words such as `20/s burst 40`. (Default: no limit) */
  readonly rate?: RateLimit
  /** When it is left alone after failures, and when it is given up. (Default: {}, the defaults) */
  readonly circuit: {
    readonly state?: "closed" | "open" | "half-open"
    readonly since?: string
    readonly nextProbeAt?: string
    readonly probesSucceeded?: number
    readonly lastProbe?: string
    readonly why?: string
    readonly ramping?: true
    readonly failures: number
    readonly rate: "none" | {
      readonly percent: number
      readonly of: number
      readonly over: string
    }
    readonly coolDown: string
    readonly maxCoolDown: string
    readonly successes: number
    readonly onOpen: "backlog" | "dead-letter"
    readonly giveUpAfter: string
    readonly onGiveUp: "disable" | "suspend"
    readonly onGone: "disable" | "suspend"
    readonly permanentFailures: number
  }
  /** Time-out of an attempt, including redirects, such as "30 seconds". (Default: the policy's, else 30 seconds) */
  readonly timeout?: string
  /** Time limit of name look-up, TCP and TLS, such as "5 seconds". (Default: the policy's, else 10 seconds) */
  readonly connectTimeout?: string
  /** Redirects that are followed, 0 to 10. Without any, a 3xx is a permanent failure. (Default: 0) */
  readonly redirects: number
  /** Origins that redirects may lead to beside the URL's own, such as https://eu.example.com. (Default: none) */
  readonly redirectsTo?: ReadonlyArray<string>
  /** Headers that it gets with every request, without their values. */
  readonly headers: { readonly [name: string]: string }
  /** Headers of the publisher that it gets, by name: true adds one, null removes one. (Default: none) */
  readonly forwardHeaders?: ReadonlyArray<string>
  /** Whom to tell of problems. (Default: nobody) */
  readonly contact?: string
  /** What it is for: 1 to 500 characters on one line. (Default: none) */
  readonly description?: string
  /** What your own programs know it by, such as a customer's number: up to 20 entries, names of 64 bytes and values of 512. No place for credentials or what is to be erased: the history keeps them. (Default: {}) */
  readonly metadata?: { readonly [name: string]: string }
  /** When alerts about it are raised. (Default: {}, as its tenant has it) */
  readonly alerts?: "off" | AlertThresholds
  /** Its signing secrets, newest first, without their values. */
  readonly secrets: ReadonlyArray<{
    readonly value: string
    readonly createdAt: string
    readonly until?: string
  }>
  /** Since when and why it gets no events. */
  readonly disabled?: {
    readonly at: string
    readonly reason: string
    readonly by: string
  }
  /** Since when and why it was given up; its deliveries wait. */
  readonly suspended?: {
    readonly at: string
    readonly reason: string
    readonly by: string
  }
  /** Since when and why its deliveries are held back. */
  readonly paused?: {
    readonly at: string
    readonly by: string
    readonly reason?: string
    readonly lacksUrl?: true
  }
  /** When it was added. */
  readonly createdAt: string
  /** When it was changed last. */
  readonly updatedAt: string
  /** With which receivers verify, where the scheme has one. */
  readonly publicKey?: string
  /** Changes with every change; the ETag of the endpoint. */
  readonly revision: number
  /** False if it had that state already. */
  readonly changed: boolean
}

/** An event, and what became of it at each endpoint. */
export interface Event {
  readonly id: string
  readonly tenant: string
  readonly type: string
  /** Its sequence in the stream of events. */
  readonly seq: number
  /** When the broker stored it. */
  readonly at: string
  /** Size of its body; absent if the event is not kept any more. */
  readonly bytes?: number
  readonly contentType?: string
  /** False while nothing is recorded of it: it is stored, and to which endpoints it goes is not known yet. */
  readonly routed: boolean
  /** What became of it at each endpoint: the last round. */
  readonly deliveries: ReadonlyArray<{
    readonly delivery: string
    readonly endpoint: string
    readonly round: string
    readonly state: "open" | "delivered" | "dead-lettered" | "discarded" | "skipped"
    readonly attempts: number
    readonly reason?: string
  }>
}

export interface EventList {
  readonly events: ReadonlyArray<LoggedEvent>
  /** The `cursor` of the next page; absent at the end. */
  readonly next?: string
  /** The `cursor` of the page before, of what is newer; absent on the first. */
  readonly previous?: string
  /** A page ends after 40 ms of searching. It then has what was found among all that is newer than this (of a previous page: older), and a cursor to go on with, however few that are. */
  readonly searchedUntil: string | null
  /** How far the log is behind what happens. */
  readonly lag: {
    readonly facts: number
    readonly ms: number
  }
}

/** What happened at an endpoint or with an event type; those with most dead letters first. */
export interface GroupTotals {
  readonly by: "endpoint" | "type"
  /** `TENANT/ENDPOINT`, or the type; null for all that are not listed. */
  readonly name: string | null
  readonly others?: number
  readonly events: number
  readonly begun: number
  readonly delivered: number
  readonly skipped: number
  readonly deliveredLate: number
  readonly retries: number
  readonly deadLettered: number
  readonly discarded: number
  readonly attempts: number
  readonly successRate: number | null
  readonly meanAttempts: number | null
  readonly attemptCounts: { readonly [name: string]: number }
  readonly toSuccessMs: {
    readonly p50: number
    readonly p90: number
    readonly p99: number
  } | null
  readonly latencyMs: {
    readonly p50: number
    readonly p90: number
    readonly p99: number
  } | null
}

export interface GroupTotalsList {
  readonly totals: ReadonlyArray<GroupTotals>
  /** Of totals from the log of deliveries: the beginning of the oldest hour that it has. Where it is later than `since`, hours before are missing. */
  readonly oldestHour?: string | null
  /** Of totals from the log of deliveries: how far it is behind. The hours that `since` and `until` fall into count as a whole then. */
  readonly lag?: {
    readonly facts: number
    readonly ms: number
  }
}

export interface Health {
  readonly status: "ok"
  readonly broker: "connected" | "away"
}

/** Long work. It goes on with another console where its own has stopped. */
export interface Job {
  readonly id: string
  /** Whose it is; `*`: of all tenants. */
  readonly tenant: string
  readonly state: "waiting" | "running" | "done" | "failed" | "cancelled"
  /** Who asked for it. */
  readonly by: string
  /** When it was asked for. */
  readonly createdAt: string
  /** When it ended; absent while it has not. */
  readonly endedAt?: string
  /** How far it has come. */
  readonly progress?: {
    readonly done: number
    readonly total: number
  }
  /** Its result, once it is done. */
  readonly result?: { readonly [name: string]: unknown }
  /** Why it failed. */
  readonly problem?: string
  readonly kind: "redelivery" | "replay" | "audit" | "retry" | "recovery"
  /** What was asked for: the fields of the request, with the times that it had by default. Of more than 20 `id`, the first ones, and in `ids` their number. */
  readonly asked: { readonly [name: string]: unknown }
  /** How many consoles have ended in the middle of it. A job that ended three fails. */
  readonly takeovers: number
}

export interface JobList {
  readonly jobs: ReadonlyArray<Job>
  /** The `cursor` of the next page; absent at the end. */
  readonly next?: string
}

export interface LinkOrSession {
  readonly id: string
  readonly tenant: "*" | string
  readonly scopes: ReadonlyArray<"endpoints:read" | "endpoints:write" | "secrets:read" | "events:publish" | "deliveries:read" | "payloads:read" | "dead:read" | "dead:write" | "replay:write" | "tokens:write" | "operator">
  readonly name?: string
  readonly rate?: number
  readonly expiresAt?: string
  readonly use?: "link" | "session"
  readonly opensUntil?: string
  readonly endpoint?: string
  readonly brand?: {
    /** What stands in place of Petrel's name. */
    readonly name?: string
    /** Of links and buttons: `#0b63ce`. */
    readonly colour?: string
    /** A data URL of an image. */
    readonly logo?: string
  }
  readonly createdAt: string
  readonly by: string
  readonly parent?: string
}

/** One attempt of a delivery. */
export interface LoggedAttempt {
  /** Its delivery's id, <event id>.<endpoint id>. */
  readonly delivery: string
  readonly round: string
  readonly tenant: string
  readonly endpoint: string
  readonly event: string
  readonly eventSeq: number
  readonly eventAt: string
  readonly type: string | null
  /** Its number within its round, from 1. */
  readonly number: number
  readonly at: string
  readonly outcome: "success" | "failure"
  /** It was sent while the endpoint's circuit was half-open. */
  readonly isProbe: boolean
  readonly status: number | null
  readonly error: {
    readonly class: string
    readonly message: string
  } | null
  /** How long it took, ms. */
  readonly durationMs: number | null
  readonly nextAttemptAt: string | null
  readonly worker: string | null
  /** The sequence of its fact in the history. */
  readonly seq: number
  readonly connectMs?: number
  readonly firstByteMs?: number
  /** What the receiver answered, with the scope payloads:read. */
  readonly response?: {
    readonly headers: { readonly [name: string]: string }
    readonly body: string
    readonly bytes: number
  }
  /** The redirects that it followed, with the scope payloads:read. */
  readonly redirects?: ReadonlyArray<{
    readonly status: number
    readonly to: string
  }>
}

/** One round of a delivery. */
export interface LoggedDelivery {
  /** Its id, <event id>.<endpoint id>. */
  readonly delivery: string
  readonly round: string
  readonly tenant: string
  readonly endpoint: string
  readonly event: string
  readonly eventSeq: number
  readonly eventAt: string
  readonly type: string | null
  /** `waiting` has not ended; `skipped` was left out by the plan, as the endpoint was disabled. */
  readonly state: "waiting" | "delivered" | "dead-lettered" | "discarded" | "skipped"
  readonly late: boolean
  /** The highest number of an attempt. */
  readonly attempts: number
  readonly probes: number
  /** The status of the last answer. */
  readonly status: number | null
  /** The class of the last attempt's error. */
  readonly error: string | null
  /** Why it ended without success, or was left out. */
  readonly reason: string | null
  /** When the round began; null if that is no longer known. */
  readonly beganAt: string | null
  /** When it ended; of one that waits, when it began. */
  readonly at: string
  /** Duration of the last attempt, ms. */
  readonly durationMs: number | null
  /** When it is attempted again. */
  readonly nextAttemptAt: string | null
  /** The number of the dead letter that it left. */
  readonly dead: number | null
  readonly redeliveredAs: string | null
  readonly seq: number
}

/** An event that was routed. */
export interface LoggedEvent {
  /** Its id, as receivers get it. */
  readonly id: string
  readonly tenant: string
  /** Its sequence in the stream of events. */
  readonly seq: number
  /** When the broker stored it. */
  readonly at: string
  readonly type: string | null
  /** How it came; null if that is no longer known. */
  readonly channel: string | null
  /** How many rounds of its deliveries are in each state. */
  readonly rounds: {
    readonly waiting: number
    readonly delivered: number
    readonly deadLettered: number
    readonly discarded: number
    readonly skipped: number
  }
}

/** The settings of an endpoint. What is left out is at its default. */
export interface NewEndpoint {
  /** Where requests go: http or https. */
  readonly url: string
  /** Event types it wants, as NATS wildcards: `invoice.paid`, `invoice.*`, `>`. (Default: all) */
  readonly types?: ReadonlyArray<string> | undefined
  /** How requests are signed: Standard Webhooks, Stripe's or GitHub's way, or not at all. (Default: standard) */
  readonly sign?: "standard" | "standard-ed25519" | "stripe" | "github" | "none" | undefined
  /** Name of the signature header where `sign` is stripe. (Default: petrel-signature) */
  readonly signatureHeader?: string | undefined
  /** Other names for the headers id, type and timestamp. */
  readonly headerNames?: {
    /** Of the event's id. (Default: webhook-id) */
    readonly id?: string | undefined
    /** Of the event's type. (Default: webhook-event-type) */
    readonly type?: string | undefined
    /** Of the attempt's time, s since the epoch. (Default: webhook-timestamp) */
    readonly timestamp?: string | undefined
  } | undefined
  /** The name of a preset, or a policy of its own. (Default: default) */
  readonly retry?: string | RetryPolicy | undefined
  /** Policies of some event types, by type filter. (Default: `retry` is the policy of all types) */
  readonly retryFor?: { readonly [name: string]: string | RetryPolicy } | undefined
  /** Concurrent requests, 1 to 1,000. (Default: 10) */
  readonly maxInFlight?: number | undefined
  /** Lower the concurrency while it answers 429 or slows down. (Default: false) */
  readonly adapt?: boolean | undefined
  /** `slack`: bodies as incoming webhooks of chat tools take them; only where all its types are alerts. (Default: the event's bytes) */
  readonly format?: "slack" | undefined
  /** Requests per second, and the burst after a pause: as numbers, or in words such as `20/s burst 40`. (Default: no limit) */
  readonly rate?: RateLimit | RateInWords | undefined
  /** When it is left alone after failures, and when it is given up. (Default: {}, the defaults) */
  readonly circuit?: Circuit | undefined
  /** Time-out of an attempt, including redirects, such as "30 seconds". (Default: the policy's, else 30 seconds) */
  readonly timeout?: string | undefined
  /** Time limit of name look-up, TCP and TLS, such as "5 seconds". (Default: the policy's, else 10 seconds) */
  readonly connectTimeout?: string | undefined
  /** Redirects that are followed, 0 to 10. Without any, a 3xx is a permanent failure. (Default: 0) */
  readonly redirects?: number | undefined
  /** Origins that redirects may lead to beside the URL's own, such as https://eu.example.com. (Default: none) */
  readonly redirectsTo?: ReadonlyArray<string> | undefined
  /** Headers that it gets with every request. Their values are not shown again. */
  readonly headers?: { readonly [name: string]: string } | undefined
  /** Headers of the publisher that it gets, by name: true adds one, null removes one. (Default: none) */
  readonly forwardHeaders?: { readonly [name: string]: true | null } | undefined
  /** Whom to tell of problems. (Default: nobody) */
  readonly contact?: string | undefined
  /** What it is for: 1 to 500 characters on one line. (Default: none) */
  readonly description?: string | undefined
  /** What your own programs know it by, such as a customer's number: up to 20 entries, names of 64 bytes and values of 512. No place for credentials or what is to be erased: the history keeps them. (Default: {}) */
  readonly metadata?: { readonly [name: string]: string } | undefined
  /** When alerts about it are raised. (Default: {}, as its tenant has it) */
  readonly alerts?: "off" | AlertThresholds | undefined
  /** It gets its tenant's alerts as events, too. (Default: false) */
  readonly operational?: boolean | undefined
  /** The signing secret, which replaces all it has. (Default: a new one, which is shown) */
  readonly secret?: string | undefined
}

/** An event, with one of `data`, `text` and `base64`. */
export type NewEvent = {
  /** Such as invoice.paid. */
  readonly type: string
  /** The same id within 10 minutes (unless the installation has another time) is the same event. The tenant and a dot are put before it. (Default: a new one) */
  readonly id?: string | undefined
  /** What receivers are told that the body is. (Default: application/json for `data`, text/plain for `text`, application/octet-stream for `base64`) */
  readonly contentType?: string | undefined
  /** Stored with the event. Receivers get traceparent and tracestate, and those that their endpoint or tenant names. */
  readonly headers?: { readonly [name: string]: string } | undefined
  /** Any JSON. Receivers get it as it is written here, without white space. */
  readonly data: unknown
} | {
  /** Such as invoice.paid. */
  readonly type: string
  /** The same id within 10 minutes (unless the installation has another time) is the same event. The tenant and a dot are put before it. (Default: a new one) */
  readonly id?: string | undefined
  /** What receivers are told that the body is. (Default: application/json for `data`, text/plain for `text`, application/octet-stream for `base64`) */
  readonly contentType?: string | undefined
  /** Stored with the event. Receivers get traceparent and tracestate, and those that their endpoint or tenant names. */
  readonly headers?: { readonly [name: string]: string } | undefined
  /** Receivers get it in UTF-8. */
  readonly text: string
} | {
  /** Such as invoice.paid. */
  readonly type: string
  /** The same id within 10 minutes (unless the installation has another time) is the same event. The tenant and a dot are put before it. (Default: a new one) */
  readonly id?: string | undefined
  /** What receivers are told that the body is. (Default: application/json for `data`, text/plain for `text`, application/octet-stream for `base64`) */
  readonly contentType?: string | undefined
  /** Stored with the event. Receivers get traceparent and tracestate, and those that their endpoint or tenant names. */
  readonly headers?: { readonly [name: string]: string } | undefined
  /** Receivers get the bytes. */
  readonly base64: string
}

export interface NewPortalLink {
  /** The endpoint that it is about. (Default: all of the tenant's) */
  readonly endpoint?: string | undefined
  /** How long link and session last, ms, a minute to a day. (Default: an hour) */
  readonly lastsMs?: number | undefined
  /** Whom it is for. */
  readonly name?: string | undefined
  /** Its pages show, and change nothing. (Default: false) */
  readonly readOnly?: boolean | undefined
  /** What its pages are headed with: a name, a colour such as #0b63ce, a logo as a data URL. */
  readonly brand?: {
    /** What stands in place of Petrel's name. */
    readonly name?: string | undefined
    /** Of links and buttons: `#0b63ce`. */
    readonly colour?: string | undefined
    /** A data URL of an image. */
    readonly logo?: string | undefined
  } | undefined
}

/** A source that is to be added. */
export interface NewSource {
  /** Who sends: stripe, github, standard and others. */
  readonly provider: string
  /** What the provider signs with, or its public keys. */
  readonly secrets?: ReadonlyArray<string> | undefined
  /** How far the signed time may be off; what is usual depends on the provider. */
  readonly tolerance?: string | undefined
  /** The URL that the provider was given, without its query, where it signs that. */
  readonly publicUrl?: string | undefined
  /** What the provider calls the webhook, such as `repos/acme/shop/hooks/42` in GitHub's API. */
  readonly webhookId?: string | undefined
  /** What the provider repeats when the webhook is set up. */
  readonly verifyToken?: string | undefined
  /** How a sender of the provider `hmac` signs. */
  readonly scheme?: { readonly [name: string]: string } | undefined
  /** Requests that are taken; others are refused for now, and the provider sends them again. */
  readonly rate?: RateLimit | RateInWords | undefined
  /** Credentials for the provider's API, which is asked for what never came in. */
  readonly apiKey?: string | undefined
  /** Where the provider's API is, where that is not the provider's own. */
  readonly apiUrl?: string | undefined
  /** How often gateways ask the provider's API for what never came in, and fetch it. */
  readonly reconcile?: string | undefined
  /** Patterns of the provider's types that are compared, such as `invoice.*`. */
  readonly reconcileTypes?: ReadonlyArray<string> | undefined
  /** How many may be missing before the history has `provider-lost`. */
  readonly alertAbove?: number | undefined
}

export interface NewToken {
  /** What it may do: endpoints:read, endpoints:write, secrets:read, events:publish, deliveries:read, payloads:read, dead:read, dead:write, replay:write, tokens:write, operator. */
  readonly scopes: ReadonlyArray<"endpoints:read" | "endpoints:write" | "secrets:read" | "events:publish" | "deliveries:read" | "payloads:read" | "dead:read" | "dead:write" | "replay:write" | "tokens:write" | "operator">
  /** What it is for. */
  readonly name?: string | undefined
  /** Requests per second. (Default: as the token it is made with, else 1,000) */
  readonly rate?: number | undefined
  /** When it expires. (Default: with the token it is made with, else never) */
  readonly expiresAt?: string | Date | undefined
}

/** The outboxes of databases, as their relays last reported them. */
export interface OutboxList {
  readonly outboxes: ReadonlyArray<{
    readonly name: string
    readonly at: string
    readonly relay: string
    readonly pending: number
    readonly oldestMs: number
    readonly setAside: number
    readonly problem?: string
    readonly problemMs?: number
    readonly isSilent: boolean
  }>
}

/** What a retry policy makes of a delivery that always fails. Times in ms. */
export interface OutlinedPolicy {
  /** The name of a preset, or `a policy of its own`. */
  readonly name: string
  /** The event types that it holds for; absent for all that have no other. */
  readonly types?: string
  readonly policy: RetryPolicy
  /** Each wait between its shortest and longest; `attempt` follows it. */
  readonly waits: ReadonlyArray<{
    readonly attempt: number
    readonly least: number
    readonly most: number
    readonly earliest: number
    readonly latest: number
    readonly mayBeCut: boolean
  }>
  readonly maxAttempts: number
  /** How long a round may last. */
  readonly window: number
  /** When the last attempt fails at the earliest and at the latest. */
  readonly givesUp: {
    readonly earliest: number
    readonly latest: number
  }
  /** What ends the round: its attempts, its window, or either. */
  readonly endedBy: "attempts" | "either" | "window"
  /** Statuses with limits of their own. */
  readonly statuses: ReadonlyArray<{
    readonly status: string
    readonly attempts: number
    readonly window: number
    readonly waits: ReadonlyArray<number>
  }>
}

/** A link that was made. */
export interface PortalLink {
  readonly id: string
  readonly tenant: "*" | string
  readonly scopes: ReadonlyArray<"endpoints:read" | "endpoints:write" | "secrets:read" | "events:publish" | "deliveries:read" | "payloads:read" | "dead:read" | "dead:write" | "replay:write" | "tokens:write" | "operator">
  /** Whom it is for. */
  readonly name?: string
  readonly rate?: number
  /** When link and session end. */
  readonly expiresAt?: string
  readonly use?: "link" | "session"
  /** Until when it opens a session. */
  readonly opensUntil?: string
  /** The endpoint that it is about. (Default: all of the tenant's) */
  readonly endpoint?: string
  /** What its pages are headed with: a name, a colour such as #0b63ce, a logo as a data URL. */
  readonly brand?: {
    /** What stands in place of Petrel's name. */
    readonly name?: string
    /** Of links and buttons: `#0b63ce`. */
    readonly colour?: string
    /** A data URL of an image. */
    readonly logo?: string
  }
  readonly createdAt: string
  readonly by: string
  readonly parent?: string
  /** What follows the console's address. It is shown only once. */
  readonly path: string
}

export interface PortalLinkList {
  readonly links: ReadonlyArray<LinkOrSession>
}

/** The state of the projection, which the log of deliveries is read from. */
export interface Projection {
  readonly state: "rebuilding" | "following" | "stopped"
  readonly problem: string | null
  readonly position: number
  readonly lag: {
    readonly facts: number
    readonly ms: number
  }
  readonly rows: number
  readonly waiting: number
  readonly repeatedAttempts: number
  readonly bytes: number
  readonly sums: {
    readonly rows: number
    readonly maxRows: number
    readonly together: number
  }
  readonly oldest: string | null
  readonly data: string
}

export interface PublishedEvent {
  /** Its id, which receivers get. */
  readonly id: string
  readonly tenant: string
  readonly type: string
  /** Its sequence in the stream of events; absent where tenants have streams of their own. */
  readonly seq?: number
  /** True if the same event was there already: nothing new was stored. */
  readonly duplicate: boolean
  /** Headers that are stored with the event, and that receivers get only if they are named. */
  readonly unsent: ReadonlyArray<string>
}

/** Which of a tenant's quarantine are meant: by number, source, reason, or all. */
export interface QuarantineChoice {
  /** Their numbers, up to 100. All conditions hold at once. */
  readonly number?: ReadonlyArray<number> | undefined
  /** Only those of this source. */
  readonly source?: string | undefined
  /** Only those that are there for this reason. */
  readonly reason?: "unreadable" | "id-collision" | "invalid" | undefined
  /** `true` for all of it. (Default: false) */
  readonly all?: boolean | undefined
}

export interface QuarantineList {
  readonly quarantined: ReadonlyArray<Quarantined>
}

/** A request in quarantine: it came in and could not become an event. */
export interface Quarantined {
  /** Its number, in the order in which all of it came. */
  readonly number: number
  readonly tenant: string
  readonly source: string
  readonly provider: string
  /** `unreadable`: not of the shape that its provider documents; `id-collision`: an event with the same id and other bytes came before; `invalid`: it cannot be stored as an event. */
  readonly reason: "unreadable" | "id-collision" | "invalid"
  /** One sentence. */
  readonly problem: string
  readonly at: string
  readonly bytes: number
  readonly contentType: string
  /** The sender's id, where it could be read. */
  readonly event?: string
  /** The sender's type, where it could be read. */
  readonly type?: string
  /** Of the request, without those that authenticate it. */
  readonly headers?: { readonly [name: string]: string }
  /** The bytes, in base64. */
  readonly body?: string
}

export type RateInWords = string

/** A sustained rate, and the burst after a pause. */
export interface RateLimit {
  readonly perSecond: number
  readonly burst: number
}

export interface Reason {
  /** Why, for the history. */
  readonly reason?: string | undefined
}

/** From when on what failed at an endpoint is sent again. */
export interface Recovery {
  /** Failed then or later. */
  readonly since: string | Date
  /** Failed then or earlier. (Default: now) */
  readonly until?: string | Date | undefined
  /** Say what would be done, and do nothing. (Default: false) */
  readonly dryRun?: boolean | undefined
}

export interface RecoveryPlan {
  readonly selected: number
  readonly redeliver: number
  readonly reasons: { readonly [name: string]: number }
  readonly mayRepeat?: number
  readonly gone: number
  readonly before: number
  readonly deliveredLate: number
  readonly skipped: ReadonlyArray<{
    readonly endpoint: string
    readonly why: "endpoint-removed" | "endpoint-disabled" | "endpoint-unreadable"
    readonly count: number
  }>
  readonly skippedElsewhere: number
  readonly retried: {
    readonly endpoints: number
    readonly moved: number
    readonly inFlight: number
    readonly inBacklog: number
    readonly left: number
    readonly skipped: ReadonlyArray<{
      readonly endpoint: string
      readonly why: string
    }>
    readonly skippedElsewhere: number
  }
}

/** Which dead letters are sent again; all conditions hold at once. */
export interface Redelivery {
  /** Only those that ended for this reason. */
  readonly reason?: "permanent" | "attempts" | "status-limit" | "deadline" | "endpoint-disabled" | "endpoint-removed" | "circuit-open" | "backlog-full" | "defect" | "event-gone" | "gone" | undefined
  /** Only those with this last status, or its class: 503, 5xx. */
  readonly status?: string | undefined
  /** Only those of these event types: `invoice.paid`, `invoice.*`, `>`. */
  readonly type?: string | undefined
  /** Stored then or later. */
  readonly since?: string | Date | undefined
  /** Stored then or earlier. (Default: now) */
  readonly until?: string | Date | undefined
  /** Only those of these numbers. */
  readonly id?: ReadonlyArray<number> | undefined
  /** All of them; without any other condition. */
  readonly all?: boolean | undefined
  /** Only those of this endpoint. */
  readonly endpoint?: string | undefined
  /** Say what would be done, and do nothing. (Default: false) */
  readonly dryRun?: boolean | undefined
}

export interface RedeliveryPlan {
  readonly selected: number
  readonly redeliver: number
  readonly reasons: { readonly [name: string]: number }
  readonly mayRepeat?: number
  readonly gone: number
  readonly before: number
  readonly deliveredLate: number
  readonly skipped: ReadonlyArray<{
    readonly endpoint: string
    readonly why: "endpoint-removed" | "endpoint-disabled" | "endpoint-unreadable"
    readonly count: number
  }>
  readonly skippedElsewhere: number
}

export interface Release {
  /** Of the event, without its source. (Default: what its provider says) */
  readonly type?: string | undefined
}

/** Which of a tenant's quarantine are to be events, and of which type. */
export interface ReleaseChoice {
  /** Their numbers, up to 100. All conditions hold at once. */
  readonly number?: ReadonlyArray<number> | undefined
  /** Only those of this source. */
  readonly source?: string | undefined
  /** Only those that are there for this reason. */
  readonly reason?: "unreadable" | "id-collision" | "invalid" | undefined
  /** `true` for all of it. (Default: false) */
  readonly all?: boolean | undefined
  /** Of all their events, without their source. (Default: what the provider says of each) */
  readonly type?: string | undefined
}

export interface Released {
  readonly number: number
  readonly tenant: string
  readonly source: string
  readonly events: ReadonlyArray<{
    readonly id: string
    readonly type: string
  }>
}

export interface ReleasedSeveral {
  readonly released: ReadonlyArray<{
    readonly number: number
    readonly tenant: string
    readonly source: string
    readonly events: ReadonlyArray<{
      readonly id: string
      readonly type: string
    }>
  }>
  readonly left: ReadonlyArray<{
    readonly number: number
    readonly problem: string
  }>
}

export interface RemovedEndpoint {
  readonly tenant: string
  readonly id: string
  readonly removed: true
}

export interface RemovedSource {
  readonly tenant: string
  readonly id: string
  readonly provider: string
}

/** Which events of the past are sent to an endpoint once more. */
export interface Replay {
  /** The endpoint that gets them. */
  readonly endpoint: string
  /** Only the event of this id. */
  readonly event?: string | undefined
  /** Events stored then or later. */
  readonly since?: string | Date | undefined
  /** Events stored then or earlier. (Default: now) */
  readonly until?: string | Date | undefined
  /** Only events that it was not sent because it was disabled. */
  readonly skipped?: boolean | undefined
  /** Leave out events that it has taken or that are on their way there. */
  readonly onlyMissing?: boolean | undefined
  /** A name: the same again goes on with it. (Default: made from the other fields) */
  readonly id?: string | undefined
  /** NATS wildcards, of which one must match. (Default: what the endpoint wants) */
  readonly types?: ReadonlyArray<string> | undefined
  /** Say what would be done, and do nothing. (Default: false) */
  readonly dryRun?: boolean | undefined
}

export interface ReplayPlan {
  readonly id: string
  readonly since: string
  readonly until: string
  readonly before: number
  readonly delivered: number
  readonly underWay: number
  readonly unrouted: number
  readonly replay: number
  readonly types: { readonly [name: string]: number }
  readonly otherTypes: number
}

/** A delivery that is sent once more, in a round of its own. */
export interface ResentDelivery {
  readonly delivery: string
  readonly tenant: string
  readonly endpoint: string
  readonly replay: string
}

export interface RetriedDelivery {
  readonly delivery: string
  readonly tenant: string
  readonly endpoint: string
  readonly state: "moved" | "in-flight" | "backlog" | "left"
  /** What sets its pace from here on. */
  readonly pace: ReadonlyArray<string>
}

export interface RetriedEndpoint {
  readonly tenant: string
  readonly id: string
  readonly moved: number
  readonly inFlight: number
  readonly inBacklog: number
  readonly left: number
  /** What sets the pace of its deliveries from here on. */
  readonly pace: ReadonlyArray<string>
}

/** Which waiting deliveries are tried now; all conditions hold at once. */
export interface Retry {
  /** Only those of this endpoint. */
  readonly endpoint?: string | undefined
  /** NATS wildcards, of which one must match the event's type. */
  readonly types?: ReadonlyArray<string> | undefined
  /** Only those with this last status, or its class: 503, 5xx. */
  readonly status?: string | undefined
  /** Only those whose last attempt failed with an error of this class. */
  readonly error?: "timeout" | "connect-timeout" | "refused" | "reset" | "unreachable" | "connection" | "dns" | "certificate" | "handshake" | "address" | "protocol" | "redirect" | "interrupted" | undefined
  /** Attempted last then or later. */
  readonly since?: string | Date | undefined
  /** Attempted last then or earlier. */
  readonly until?: string | Date | undefined
  /** Do not wait for the end of the receiver's Retry-After. (Default: false) */
  readonly ignoreRetryAfter?: boolean | undefined
  /** All of them; without any other condition. */
  readonly all?: boolean | undefined
  /** Say what would be done, and do nothing. (Default: false) */
  readonly dryRun?: boolean | undefined
}

export interface RetryNow {
  /** Do not wait for the end of the receiver's Retry-After. (Default: false) */
  readonly ignoreRetryAfter?: boolean | undefined
}

/** What would become of the deliveries that are to be tried now. */
export interface RetryPlan {
  /** Endpoints that are looked at: those for which something waits. */
  readonly endpoints: number
  /** Wait for their next attempt, and would go on now. */
  readonly moved: number
  /** Are being attempted, or about to be. */
  readonly inFlight: number
  /** Are in their endpoint's backlog, whatever they are, and go on when that takes them. */
  readonly inBacklog: number
  /** Would stay as they are. */
  readonly left: number
  /** Endpoints that take nothing now, and why; at most 100 of them. */
  readonly skipped: ReadonlyArray<{
    readonly endpoint: string
    readonly why: string
  }>
  /** How many further ones take nothing. */
  readonly skippedElsewhere: number
}

export interface RetryPolicies {
  readonly policies: ReadonlyArray<OutlinedPolicy>
}

/** When to retry, and when to stop. */
export interface RetryPolicy {
  readonly backoff: Backoff
  readonly jitter: "none" | "full" | "equal" | "scaled"
  readonly maxAttempts: number
  readonly window: string
  readonly retryAfterCap?: string | undefined
  readonly timeout?: string | undefined
  readonly connectTimeout?: string | undefined
  readonly statuses?: { readonly [name: string]: "delivered" | "retry" | "fail" | StatusRule } | undefined
  readonly errors?: { readonly [name: string]: "retry" | "fail" } | undefined
}

/** A retry policy that has a name. */
export interface RetryPreset {
  /** What `retry` of an endpoint may name. */
  readonly name: string
  /** Whose policy it is. */
  readonly source: string
  readonly policy: RetryPolicy
  /** What may not be intended, as the rest of a sentence about it. */
  readonly caution?: string
  /** Between attempts, without jitter. */
  readonly waits: ReadonlyArray<string>
  readonly total: string
  readonly outline: OutlinedPolicy
}

export interface RetryPresetList {
  readonly presets: ReadonlyArray<RetryPreset>
}

/** A token that was revoked. */
export interface RevokedToken {
  /** Its id, the middle part of the token. */
  readonly id: string
  /** Whose it is; `*`: of all tenants. */
  readonly tenant: "*" | string
  /** What it may do: endpoints:read, endpoints:write, secrets:read, events:publish, deliveries:read, payloads:read, dead:read, dead:write, replay:write, tokens:write, operator. */
  readonly scopes: ReadonlyArray<"endpoints:read" | "endpoints:write" | "secrets:read" | "events:publish" | "deliveries:read" | "payloads:read" | "dead:read" | "dead:write" | "replay:write" | "tokens:write" | "operator">
  /** What it is for. */
  readonly name?: string
  /** Requests per second. (Default: as the token it is made with, else 1,000) */
  readonly rate?: number
  /** When it expires. (Default: with the token it is made with, else never) */
  readonly expiresAt?: string
  readonly use?: "link" | "session"
  readonly opensUntil?: string
  readonly endpoint?: string
  readonly brand?: {
    /** What stands in place of Petrel's name. */
    readonly name?: string
    /** Of links and buttons: `#0b63ce`. */
    readonly colour?: string
    /** A data URL of an image. */
    readonly logo?: string
  }
  /** When it was made. */
  readonly createdAt: string
  /** Who made it. */
  readonly by: string
  /** The token that it was made with. What that one cannot do, it cannot; it is revoked with it. */
  readonly parent?: string
  /** The ids of those that were made with it, and are revoked with it. */
  readonly with: ReadonlyArray<string>
}

/** An endpoint with a new secret. */
export interface RotatedEndpoint {
  readonly v: 1
  /** Its tenant. */
  readonly tenant: string
  /** Its id within the tenant. */
  readonly id: string
  /** Made anew each time that an endpoint of this name is added. */
  readonly generation: string
  /** Where requests go: http or https. */
  readonly url: string
  /** Event types it wants, as NATS wildcards: `invoice.paid`, `invoice.*`, `>`. (Default: all) */
  readonly types: ReadonlyArray<string>
  /** How requests are signed: Standard Webhooks, Stripe's or GitHub's way, or not at all. (Default: standard) */
  readonly sign: "standard" | "standard-ed25519" | "stripe" | "github" | "none"
  /** Name of the signature header where `sign` is stripe. (Default: petrel-signature) */
  readonly signatureHeader?: string
  /** Other names for the headers id, type and timestamp. */
  readonly headerNames?: {
    /** Of the event's id. (Default: webhook-id) */
    readonly id?: string
    /** Of the event's type. (Default: webhook-event-type) */
    readonly type?: string
    /** Of the attempt's time, s since the epoch. (Default: webhook-timestamp) */
    readonly timestamp?: string
  }
  /** The name of a preset, or a policy of its own. (Default: default) */
  readonly retry: string | RetryPolicy
  /** Policies of some event types, by type filter. (Default: `retry` is the policy of all types) */
  readonly retryFor?: { readonly [name: string]: string | RetryPolicy }
  /** Concurrent requests, 1 to 1,000. (Default: 10) */
  readonly maxInFlight: number
  /** Lower the concurrency while it answers 429 or slows down. (Default: false) */
  readonly adapt?: boolean
  /** `slack`: bodies as incoming webhooks of chat tools take them; only where all its types are alerts. (Default: the event's bytes) */
  readonly format?: "slack"
  /** Requests per second, and the burst after a pause: as numbers, or in words such as `20/s burst 40`. (Default: no limit) */
  readonly rate?: RateLimit
  /** When it is left alone after failures, and when it is given up. (Default: {}, the defaults) */
  readonly circuit: {
    readonly state?: "closed" | "open" | "half-open"
    readonly since?: string
    readonly nextProbeAt?: string
    readonly probesSucceeded?: number
    readonly lastProbe?: string
    readonly why?: string
    readonly ramping?: true
    readonly failures: number
    readonly rate: "none" | {
      readonly percent: number
      readonly of: number
      readonly over: string
    }
    readonly coolDown: string
    readonly maxCoolDown: string
    readonly successes: number
    readonly onOpen: "backlog" | "dead-letter"
    readonly giveUpAfter: string
    readonly onGiveUp: "disable" | "suspend"
    readonly onGone: "disable" | "suspend"
    readonly permanentFailures: number
  }
  /** Time-out of an attempt, including redirects, such as "30 seconds". (Default: the policy's, else 30 seconds) */
  readonly timeout?: string
  /** Time limit of name look-up, TCP and TLS, such as "5 seconds". (Default: the policy's, else 10 seconds) */
  readonly connectTimeout?: string
  /** Redirects that are followed, 0 to 10. Without any, a 3xx is a permanent failure. (Default: 0) */
  readonly redirects: number
  /** Origins that redirects may lead to beside the URL's own, such as https://eu.example.com. (Default: none) */
  readonly redirectsTo?: ReadonlyArray<string>
  /** Headers that it gets with every request, without their values. */
  readonly headers: { readonly [name: string]: string }
  /** Headers of the publisher that it gets, by name: true adds one, null removes one. (Default: none) */
  readonly forwardHeaders?: ReadonlyArray<string>
  /** Whom to tell of problems. (Default: nobody) */
  readonly contact?: string
  /** What it is for: 1 to 500 characters on one line. (Default: none) */
  readonly description?: string
  /** What your own programs know it by, such as a customer's number: up to 20 entries, names of 64 bytes and values of 512. No place for credentials or what is to be erased: the history keeps them. (Default: {}) */
  readonly metadata?: { readonly [name: string]: string }
  /** When alerts about it are raised. (Default: {}, as its tenant has it) */
  readonly alerts?: "off" | AlertThresholds
  /** Its signing secrets, newest first, without their values. */
  readonly secrets: ReadonlyArray<{
    readonly value: string
    readonly createdAt: string
    readonly until?: string
  }>
  /** Since when and why it gets no events. */
  readonly disabled?: {
    readonly at: string
    readonly reason: string
    readonly by: string
  }
  /** Since when and why it was given up; its deliveries wait. */
  readonly suspended?: {
    readonly at: string
    readonly reason: string
    readonly by: string
  }
  /** Since when and why its deliveries are held back. */
  readonly paused?: {
    readonly at: string
    readonly by: string
    readonly reason?: string
    readonly lacksUrl?: true
  }
  /** When it was added. */
  readonly createdAt: string
  /** When it was changed last. */
  readonly updatedAt: string
  /** With which receivers verify, where the scheme has one. */
  readonly publicKey?: string
  /** Changes with every change; the ETag of the endpoint. */
  readonly revision: number
  /** The new secret, if it was made. It is not shown again. */
  readonly secret?: string
}

export interface Rotation {
  /** The new secret. (Default: one is made) */
  readonly secret?: string | undefined
  /** How long the old secrets sign, too; "0 seconds" drops them at once. (Default: 24 hours) */
  readonly keepOld?: string | undefined
}

/** A provider's webhooks that come in. Secrets are masked. */
export interface Source {
  readonly v: 1
  readonly tenant: string
  /** Its name within the tenant: the first token of its events' types. */
  readonly id: string
  /** Who sends: stripe, github, standard and others. */
  readonly provider: string
  /** With which requests are verified, newest first. */
  readonly secrets: ReadonlyArray<{
    readonly value: string
    readonly createdAt: string
    readonly until?: string
  }>
  /** How far the signed time may be off; what is usual depends on the provider. */
  readonly tolerance?: string
  /** The URL that the provider was given, without its query, where it signs that. */
  readonly publicUrl?: string
  /** What the provider calls the webhook, such as `repos/acme/shop/hooks/42` in GitHub's API. */
  readonly webhookId?: string
  /** What the provider repeats when the webhook is set up. */
  readonly verifyToken?: string
  /** How a sender of the provider `hmac` signs. */
  readonly scheme?: { readonly [name: string]: string }
  /** Requests that are taken; others are refused for now, and the provider sends them again. */
  readonly rate?: RateLimit
  /** Credentials for the provider's API, which is asked for what never came in. */
  readonly apiKey?: string
  /** Where the provider's API is, where that is not the provider's own. */
  readonly apiUrl?: string
  /** How often gateways ask the provider's API for what never came in, and fetch it. */
  readonly reconcile?: string
  /** Patterns of the provider's types that are compared, such as `invoice.*`. */
  readonly reconcileTypes?: ReadonlyArray<string>
  /** How many may be missing before the history has `provider-lost`. */
  readonly alertAbove?: number
  readonly createdAt: string
  readonly updatedAt: string
  /** Where the provider posts, on a gateway (`petrel ingest`). */
  readonly path: string
  readonly revision: number
  /** What its last reconciliation has found, where one source is shown. */
  readonly reconciled?: {
    readonly since: string
    readonly until: string
    readonly listed: number
    readonly present: number
    readonly missing: number
    readonly fetched: number
    readonly asked: number
    readonly tooOld: number
    readonly missingIds: ReadonlyArray<string>
    readonly problem?: string
    readonly at: string
    readonly failed?: string
  }
}

export interface SourceList {
  readonly sources: ReadonlyArray<Source>
}

/** A change of a source: what is left out stays as it is, null removes a setting. */
export interface SourcePatch {
  /** How far the signed time may be off; what is usual depends on the provider. */
  readonly tolerance?: string | null | undefined
  /** The URL that the provider was given, without its query, where it signs that. */
  readonly publicUrl?: string | null | undefined
  /** What the provider calls the webhook, such as `repos/acme/shop/hooks/42` in GitHub's API. */
  readonly webhookId?: string | null | undefined
  /** What the provider repeats when the webhook is set up. */
  readonly verifyToken?: string | null | undefined
  /** How a sender of the provider `hmac` signs. */
  readonly scheme?: { readonly [name: string]: string } | null | undefined
  /** Requests that are taken; others are refused for now, and the provider sends them again. */
  readonly rate?: RateLimit | RateInWords | null | undefined
  /** Credentials for the provider's API, which is asked for what never came in. */
  readonly apiKey?: string | null | undefined
  /** Where the provider's API is, where that is not the provider's own. */
  readonly apiUrl?: string | null | undefined
  /** How often gateways ask the provider's API for what never came in, and fetch it. */
  readonly reconcile?: string | null | undefined
  /** Patterns of the provider's types that are compared, such as `invoice.*`. */
  readonly reconcileTypes?: ReadonlyArray<string> | null | undefined
  /** How many may be missing before the history has `provider-lost`. */
  readonly alertAbove?: number | null | undefined
}

/** A new secret, and how long the old ones hold (24 hours if it is not said). */
export interface SourceRotation {
  /** What the provider signs with from now on. */
  readonly secret: string
  /** How long the old ones verify, too; `0 seconds` drops them at once. */
  readonly keepOld?: string | undefined
}

/** What attempts came to, by hour or day. Quantiles are within 5% of the exact ones, or within 0.1 ms. */
export interface Stats {
  readonly tenant: string
  readonly endpoint?: string
  readonly by: "hour" | "day"
  /** The beginning of the first hour that is counted: later than asked for where the log does not reach back so far. */
  readonly since: string
  readonly until: string
  /** All periods together. */
  readonly whole: {
    readonly attempts: number
    readonly succeeded: number
    readonly failed: number
    readonly successRate: number | null
    readonly answers: { readonly [name: string]: number }
    readonly latencyMs: {
      readonly p50: number
      readonly p95: number
      readonly p99: number
    } | null
  }
  /** Oldest first, those without attempts too. */
  readonly periods: ReadonlyArray<{
    readonly begins: string
    readonly attempts: number
    readonly succeeded: number
    readonly failed: number
    readonly successRate: number | null
    readonly answers: { readonly [name: string]: number }
    readonly latencyMs: {
      readonly p50: number
      readonly p95: number
      readonly p99: number
    } | null
  }>
  /** How far the log is behind what happens. */
  readonly lag: {
    readonly facts: number
    readonly ms: number
  }
}

/** The state of the installation. */
export interface Status {
  readonly at: string
  readonly broker: {
    readonly version: string
    readonly cluster: string | null
    readonly replicas: number
    readonly storedBytes: number
    readonly accountBytes: number | null
    readonly accountLimitBytes: number | null
    readonly health: ReadonlyArray<{
      readonly server: string
      readonly ok: boolean | null
      readonly says: string
    }>
    readonly streamsInTrouble: ReadonlyArray<{
      readonly name: string
      readonly state: string
      readonly copiesBehind: ReadonlyArray<{
        readonly server: string
        readonly offline: boolean
        readonly lag: number
      }>
    }>
  }
  readonly room: {
    readonly events: {
      readonly bytes: number | null
      readonly limitBytes: number | null
      readonly oldestAt: string | null
    }
    readonly history: {
      readonly bytes: number | null
      readonly limitBytes: number | null
      readonly oldestAt: string | null
    }
    readonly deadLetters: {
      readonly bytes: number | null
      readonly limitBytes: number | null
    }
    readonly queues: {
      readonly bytes: number | null
      readonly limitBytes: number | null
    }
    readonly backlogs: {
      readonly bytes: number | null
      readonly limitBytes: number | null
    }
    readonly account: {
      readonly bytes: number | null
      readonly limitBytes: number | null
    }
  }
  readonly events: {
    readonly stored: number | null
    readonly waitingForRouter: number | null
    readonly inRouter: number | null
    readonly oldestUnroutedAt: string | null
    readonly lost: number
  }
  readonly deliveries: {
    readonly waiting: number
    readonly new: number | null
    readonly ackPending: number | null
    readonly inFlight: number | null
    readonly inLine: number | null
    readonly retries: number | null
    readonly scheduled: number | null
    readonly backlog: number | null
    readonly unreadable: number | null
    readonly partitionsAnswering: number
  }
  readonly oldestWaiting: {
    readonly tenant: string
    readonly endpoint: string
    readonly place: "queue" | "schedule" | "backlog"
    readonly since: string
  } | null
  readonly repartition: {
    readonly from: number
    readonly to: number
  } | null
  readonly partitions: ReadonlyArray<{
    readonly partition: number
    readonly owner: string | null
    readonly unownedSince?: string | null
    readonly answers: boolean
    readonly new: number | null
    readonly ackPending: number | null
    readonly inFlight: number | null
    readonly inLine: number | null
    readonly retries: number | null
    readonly scheduled: number | null
    readonly backlog: number | null
    readonly unreadable: number | null
    readonly endpointsWithBacklog: number | null
  }>
  readonly endpoints: {
    readonly total: number
    readonly closed: number
    readonly open: number
    readonly halfOpen: number
    readonly paused: number
    readonly suspended: number
    readonly disabled: number
    readonly unreadable: number
    readonly withBacklog: number
  } | null
  readonly workers: ReadonlyArray<{
    readonly worker: string
    readonly alive: boolean
    readonly host?: string
    readonly startedAt?: string
    readonly roles?: ReadonlyArray<"router" | "deliver">
    readonly leaving?: boolean
    readonly partitions: ReadonlyArray<number>
  }> | null
  readonly lastHour: {
    readonly since: string
    readonly attempts: number
    readonly delivered: number
    readonly successRate: number | null
    readonly p50Ms: number | null
    readonly p95Ms: number | null
  } | null
  readonly deadLetters: {
    readonly stored: number | null
    readonly open: number | null
    readonly lastHour: number | null
    readonly bytes: number | null
    readonly limitBytes: number | null
    readonly byTenant: { readonly [name: string]: number } | null
  }
  readonly incoming: {
    readonly events: number
    readonly notCopied: number | null
    readonly bytes: number | null
    readonly limitBytes: number | null
    readonly oldestAt: string | null
    readonly quarantined: number
    readonly quarantinedByTenant: { readonly [name: string]: number }
    readonly gateways: ReadonlyArray<{
      readonly gateway: string
      readonly host: string
      readonly startedAt: string
      readonly at: string
      readonly underWay: number
      readonly refusing: ReadonlyArray<{
        readonly tenant: string
        readonly source: string
        readonly reason: string
        readonly since: string
      }>
    }>
    readonly outboxes: ReadonlyArray<{
      readonly name: string
      readonly at: string
      readonly relay: string
      readonly pending: number
      readonly oldestMs: number
      readonly setAside: number
      readonly problem?: string
      readonly problemMs?: number
      readonly isSilent: boolean
    }>
  } | null
  readonly problems: ReadonlyArray<{
    readonly code: string
    readonly text: string
  }>
  readonly notices: ReadonlyArray<{
    readonly code: string
    readonly text: string
  }>
}

/** Retries of a status with limits of their own, shorter than the policy's. */
export interface StatusRule {
  readonly retry: {
    readonly attempts: number
    readonly window: string
  }
  readonly alert?: number | undefined
}

/** What replaces all that was set: thresholds, or null for the defaults. */
export interface SystemAlerts {
  /** Thresholds of the system, or null. */
  readonly alerts: {
    /** A warning where fewer deliveries than this succeed, percent. */
    readonly successWarnPercent?: "off" | number | undefined
    /** A critical alert where fewer deliveries than this succeed, percent. */
    readonly successCriticalPercent?: "off" | number | undefined
    /** A warning where the first attempt of more deliveries than this must be retried, percent. */
    readonly retriesPercent?: "off" | number | undefined
    /** A warning where more final answers than this are permanent failures, percent. */
    readonly permanentPercent?: "off" | number | undefined
    /** A warning where successful deliveries take more attempts than this on average. */
    readonly attemptsPerDelivery?: "off" | number | undefined
    /** A warning where half of the deliveries take longer than this from the event to success. */
    readonly medianTime?: "off" | string | undefined
    /** A warning where 1 of 100 deliveries takes longer than this from the event to success. */
    readonly p99Time?: "off" | string | undefined
    /** A warning at so many dead letters of one endpoint within the window. */
    readonly deadLetters?: "off" | number | undefined
    /** A warning at so many dead letters of all endpoints of a tenant within the window. */
    readonly tenantDeadLetters?: "off" | number | undefined
    /** A warning at so many sources of a tenant that refuse all that comes. */
    readonly sourcesRefusing?: "off" | number | undefined
    /** A warning at so many requests of a tenant in quarantine. */
    readonly quarantined?: "off" | number | undefined
    /** A warning at so many events of a tenant's sources that had not come in when these were last reconciled. */
    readonly providerLost?: "off" | number | undefined
    /** A warning at so many failed attempts in a row while the circuit is closed. */
    readonly failuresInRow?: "off" | number | undefined
    /** Whether an open circuit is an alert. */
    readonly circuitOpened?: "on" | "off" | undefined
    /** Whether a disabled endpoint is an alert. */
    readonly endpointDisabled?: "on" | "off" | undefined
    /** Whether a suspended endpoint is an alert. */
    readonly endpointSuspended?: "on" | "off" | undefined
    /** Whether as many answers with one status in a row as a retry policy names for it are an alert. */
    readonly statusInARow?: "on" | "off" | undefined
    /** The time over which all values are counted. */
    readonly window?: string | undefined
    /** With fewer deliveries than this, shares and times are not judged. */
    readonly samples?: number | undefined
    /** A critical alert where an event waits longer than this to be routed. */
    readonly unroutedTime?: "off" | string | undefined
    /** A warning where so many more deliveries wait than at the start of the window. */
    readonly waitingGrowth?: "off" | number | undefined
    /** A critical alert at so many circuits that are open at the same time. */
    readonly circuitsOpen?: "off" | number | undefined
    /** A critical alert at so many dead letters of all tenants, each within its window. */
    readonly systemDeadLetters?: "off" | number | undefined
    /** A critical alert where rows of an outbox wait longer than this to be published. */
    readonly outboxTime?: "off" | string | undefined
    /** A warning at so many rows of all outboxes that are set aside. */
    readonly outboxSetAside?: "off" | number | undefined
    /** Whether it is an alert that an audit finds something missing. */
    readonly deliveriesMissing?: "on" | "off" | undefined
    /** Whether it is an alert that the broker stores nothing more in a stream. */
    readonly diskFailed?: "on" | "off" | undefined
    /** The tenant whose operational endpoints get the alerts about the system. (Default: none) */
    readonly systemAlertsTo?: string | undefined
  } | null
}

/** What replaces all that was set: thresholds, `off`, or null for those of the system. */
export interface TenantAlerts {
  /** Thresholds of the tenant, `off`, or null. */
  readonly alerts: "off" | {
    /** A warning where fewer deliveries than this succeed, percent. */
    readonly successWarnPercent?: "off" | number | undefined
    /** A critical alert where fewer deliveries than this succeed, percent. */
    readonly successCriticalPercent?: "off" | number | undefined
    /** A warning where the first attempt of more deliveries than this must be retried, percent. */
    readonly retriesPercent?: "off" | number | undefined
    /** A warning where more final answers than this are permanent failures, percent. */
    readonly permanentPercent?: "off" | number | undefined
    /** A warning where successful deliveries take more attempts than this on average. */
    readonly attemptsPerDelivery?: "off" | number | undefined
    /** A warning where half of the deliveries take longer than this from the event to success. */
    readonly medianTime?: "off" | string | undefined
    /** A warning where 1 of 100 deliveries takes longer than this from the event to success. */
    readonly p99Time?: "off" | string | undefined
    /** A warning at so many dead letters of one endpoint within the window. */
    readonly deadLetters?: "off" | number | undefined
    /** A warning at so many dead letters of all endpoints of a tenant within the window. */
    readonly tenantDeadLetters?: "off" | number | undefined
    /** A warning at so many sources of a tenant that refuse all that comes. */
    readonly sourcesRefusing?: "off" | number | undefined
    /** A warning at so many requests of a tenant in quarantine. */
    readonly quarantined?: "off" | number | undefined
    /** A warning at so many events of a tenant's sources that had not come in when these were last reconciled. */
    readonly providerLost?: "off" | number | undefined
    /** A warning at so many failed attempts in a row while the circuit is closed. */
    readonly failuresInRow?: "off" | number | undefined
    /** Whether an open circuit is an alert. */
    readonly circuitOpened?: "on" | "off" | undefined
    /** Whether a disabled endpoint is an alert. */
    readonly endpointDisabled?: "on" | "off" | undefined
    /** Whether a suspended endpoint is an alert. */
    readonly endpointSuspended?: "on" | "off" | undefined
    /** Whether as many answers with one status in a row as a retry policy names for it are an alert. */
    readonly statusInARow?: "on" | "off" | undefined
    /** The time over which all values are counted. */
    readonly window?: string | undefined
    /** With fewer deliveries than this, shares and times are not judged. */
    readonly samples?: number | undefined
    /** Who is named in alerts about endpoints that have no contact of their own. */
    readonly contact?: string | undefined
  } | null
}

export interface TenantList {
  readonly tenants: ReadonlyArray<{
    readonly tenant: string
    /** How many endpoints it has. */
    readonly endpoints: number
  }>
  /** The `cursor` of the next page; absent at the end. */
  readonly next?: string
}

/** A change of settings: what is left out stays as it is, null removes a setting. */
export interface TenantPatch {
  /** Concurrent requests of all its endpoints whose URLs have the same host name, 1 to 100,000. (Default: no limit) */
  readonly hostCap?: number | null | undefined
  /** Longest time-out of an attempt that its endpoints may have, 1 second to 24 hours, such as "15 minutes". A longer one that is stored is cut to it. (Default: the system's, else 5 minutes) */
  readonly maxTimeout?: string | null | undefined
  /** How many endpoints a tenant may have, 0 to 1,000,000. Those of the system hold for tenants without a number of their own. (Default: 1,000) */
  readonly maxEndpoints?: number | null | undefined
  /** How many tokens of the HTTP API, and as many links and sessions of browsers, a tenant may have, 0 to 1,000,000. Those of the system hold for tenants without a number of their own. (Default: 1,000) */
  readonly maxTokens?: number | null | undefined
  /** Headers of the publisher that all its endpoints get, as well as their own, by name: true adds one, null removes one. (Default: none) */
  readonly forwardHeaders?: { readonly [name: string]: true | null } | undefined
}

/** What is set for all endpoints of a tenant together, or of the system. */
export interface TenantSettings {
  readonly tenant?: string
  /** Concurrent requests of all its endpoints whose URLs have the same host name, 1 to 100,000. (Default: no limit) */
  readonly hostCap?: number
  /** Longest time-out of an attempt that its endpoints may have, 1 second to 24 hours, such as "15 minutes". A longer one that is stored is cut to it. (Default: the system's, else 5 minutes) */
  readonly maxTimeout?: string
  /** How many endpoints a tenant may have, 0 to 1,000,000. Those of the system hold for tenants without a number of their own. (Default: 1,000) */
  readonly maxEndpoints?: number
  /** How many tokens of the HTTP API, and as many links and sessions of browsers, a tenant may have, 0 to 1,000,000. Those of the system hold for tenants without a number of their own. (Default: 1,000) */
  readonly maxTokens?: number
  /** Headers of the publisher that all its endpoints get, as well as their own, by name: true adds one, null removes one. (Default: none) */
  readonly forwardHeaders: ReadonlyArray<string>
  readonly system?: {
    readonly hostCap?: number
    readonly maxTimeout?: string
    readonly maxEndpoints?: number
    readonly maxTokens?: number
    readonly forwardHeaders: ReadonlyArray<string>
  }
  readonly revision: number
}

export interface TestEvent {
  /** Its type. (Default: petrel.test) */
  readonly type?: string | undefined
  /** Its body. (Default: a JSON object that says what it is) */
  readonly body?: string | undefined
  /** (Default: application/json) */
  readonly contentType?: string | undefined
}

/** What was sent to an endpoint as a test, and what it answered. */
export interface TestReport {
  readonly tenant: string
  readonly endpoint: string
  readonly id: string
  readonly type: string
  readonly body: string
  readonly url: string
  readonly headers: ReadonlyArray<string>
  readonly at: string
  readonly status?: number
  readonly error?: {
    readonly class: "timeout" | "connect-timeout" | "refused" | "reset" | "unreachable" | "connection" | "dns" | "certificate" | "handshake" | "address" | "protocol" | "redirect" | "interrupted"
    readonly message: string
  }
  readonly response?: {
    readonly headers: { readonly [name: string]: string }
    readonly body: string
    readonly bytes: number
  }
  readonly redirects?: ReadonlyArray<{
    readonly status: number
    readonly to: string
  }>
  readonly durationMs: number
  readonly connectMs?: number
  readonly firstByteMs?: number
  readonly verdict: "delivered" | "retry" | "fail"
}

export interface Token {
  /** Its id, the middle part of the token. */
  readonly id: string
  /** Whose it is; `*`: of all tenants. */
  readonly tenant: "*" | string
  /** What it may do: endpoints:read, endpoints:write, secrets:read, events:publish, deliveries:read, payloads:read, dead:read, dead:write, replay:write, tokens:write, operator. */
  readonly scopes: ReadonlyArray<"endpoints:read" | "endpoints:write" | "secrets:read" | "events:publish" | "deliveries:read" | "payloads:read" | "dead:read" | "dead:write" | "replay:write" | "tokens:write" | "operator">
  /** What it is for. */
  readonly name?: string
  /** Requests per second. (Default: as the token it is made with, else 1,000) */
  readonly rate?: number
  /** When it expires. (Default: with the token it is made with, else never) */
  readonly expiresAt?: string
  readonly use?: "link" | "session"
  readonly opensUntil?: string
  readonly endpoint?: string
  readonly brand?: {
    /** What stands in place of Petrel's name. */
    readonly name?: string
    /** Of links and buttons: `#0b63ce`. */
    readonly colour?: string
    /** A data URL of an image. */
    readonly logo?: string
  }
  /** When it was made. */
  readonly createdAt: string
  /** Who made it. */
  readonly by: string
  /** The token that it was made with. What that one cannot do, it cannot; it is revoked with it. */
  readonly parent?: string
}

export interface TokenList {
  readonly tokens: ReadonlyArray<Token>
}

/** What happened to a tenant's events within an hour or a day (UTC). */
export interface Totals {
  /** When the period begins. */
  readonly begins: string
  readonly by: "hour" | "day"
  readonly tenant: string
  readonly events: number
  readonly begun: number
  readonly delivered: number
  readonly skipped: number
  readonly deliveredLate: number
  readonly retries: number
  readonly deadLettered: number
  readonly discarded: number
  readonly attempts: number
  readonly successRate: number | null
  readonly meanAttempts: number | null
  readonly attemptCounts: { readonly [name: string]: number }
  readonly toSuccessMs: {
    readonly p50: number
    readonly p90: number
    readonly p99: number
  } | null
  readonly latencyMs: {
    readonly p50: number
    readonly p90: number
    readonly p99: number
  } | null
}

export interface TotalsList {
  readonly totals: ReadonlyArray<Totals>
  /** Of totals from the log of deliveries: the beginning of the oldest hour that it has. Where it is later than `since`, hours before are missing. */
  readonly oldestHour?: string | null
  /** Of totals from the log of deliveries: how far it is behind. The hours that `since` and `until` fall into count as a whole then. */
  readonly lag?: {
    readonly facts: number
    readonly ms: number
  }
}

/** The workers that are running, and the partitions that none of them has. */
export interface Workers {
  readonly workers: ReadonlyArray<{
    readonly worker: string
    readonly alive: boolean
    readonly host?: string
    readonly startedAt?: string
    readonly roles?: ReadonlyArray<"router" | "deliver">
    readonly leaving?: boolean
    readonly pid?: number
    readonly withheld?: ReadonlyArray<{
      readonly partition: number
      readonly owner: string
    }>
    readonly partitions: ReadonlyArray<{
      readonly partition: number
      readonly delivering: boolean
      readonly inFlight: number
      readonly inMemory: number
    }>
  }>
  readonly unowned: ReadonlyArray<number>
}

/** What the API refuses a request for. */
export type ApiProblemCode =
  | "bad-request"
  | "conflict"
  | "forbidden"
  | "internal"
  | "invalid-request"
  | "key-reused"
  | "method-not-allowed"
  | "not-found"
  | "request-timeout"
  | "revision-mismatch"
  | "too-large"
  | "too-many-requests"
  | "unauthorized"
  | "unavailable"
  | "unsupported-media-type"
  | "wrong-host"
