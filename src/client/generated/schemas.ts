/* Made from the operations by `npm run reference`. */

/** An alert that is raised. */
export interface Alert {
  /** Identifies one raising of the alert. An alert that replaces it, and the clearing, carry the same id. */
  readonly id: string
  /** The name of the alert. */
  readonly name: "circuit-opened" | "endpoint-disabled" | "endpoint-suspended" | "dead-letters" | "success-low" | "success-critical" | "retries-high" | "permanent-high" | "attempts-high" | "median-slow" | "p99-slow" | "endpoint-not-found" | "status-repeated" | "failures-in-row" | "tenant-dead-letters" | "source-refusing" | "quarantined" | "provider-lost" | "events-unrouted" | "waiting-growing" | "circuits-open" | "deliveries-missing" | "disk-failed" | "system-dead-letters" | "outbox-stuck" | "outbox-set-aside" | "test"
  /** What it is about. */
  readonly about: "endpoint" | "tenant" | "system"
  /** How bad it is. */
  readonly level: "warn" | "critical"
  /** The value measured when the alert was raised or cleared. Absent if there was nothing to measure. */
  readonly value?: number
  /** The threshold that it has passed. */
  readonly threshold: number
  /** The unit of value and threshold. */
  readonly unit: string
  /** The window over which the value was measured, ms. */
  readonly windowMs: number
  /** When the first alert of this id was raised. */
  readonly raisedAt: string
  /** The alert that was raised under this id until now. */
  readonly replaces?: "circuit-opened" | "endpoint-disabled" | "endpoint-suspended" | "dead-letters" | "success-low" | "success-critical" | "retries-high" | "permanent-high" | "attempts-high" | "median-slow" | "p99-slow" | "endpoint-not-found" | "status-repeated" | "failures-in-row" | "tenant-dead-letters" | "source-refusing" | "quarantined" | "provider-lost" | "events-unrouted" | "waiting-growing" | "circuits-open" | "deliveries-missing" | "disk-failed" | "system-dead-letters" | "outbox-stuck" | "outbox-set-aside" | "test"
  /** Alerts about the same endpoint or tenant that are not raised themselves, because this one is. */
  readonly also?: ReadonlyArray<"circuit-opened" | "endpoint-disabled" | "endpoint-suspended" | "dead-letters" | "success-low" | "success-critical" | "retries-high" | "permanent-high" | "attempts-high" | "median-slow" | "p99-slow" | "endpoint-not-found" | "status-repeated" | "failures-in-row" | "tenant-dead-letters" | "source-refusing" | "quarantined" | "provider-lost" | "events-unrouted" | "waiting-growing" | "circuits-open" | "deliveries-missing" | "disk-failed" | "system-dead-letters" | "outbox-stuck" | "outbox-set-aside" | "test">
  /** Whom to notify: the endpoint's contact, or else the tenant's. */
  readonly contact?: string
  /** Attempts that failed in a row. */
  readonly failuresInRow?: number
  /** The status of the last failure. */
  readonly lastStatus?: number
  /** The status or class that an alert about answers in a row is about: `404`, `5xx`. */
  readonly status?: string
  /** The error of the last failure. */
  readonly lastError?: string
  /** In `dead-letters`: the delivery that was given up last when the alert was raised. */
  readonly lastDeadLetter?: {
    /** `<event id>.<endpoint id>` */
    readonly delivery: string
    /** The type of the event. */
    readonly type?: string
    /** Why it was given up. */
    readonly reason?: string
    /** The last ones, in order. */
    readonly attempts: ReadonlyArray<{
      /** Its number in its round, from 1. */
      readonly attempt: number
      /** When it was made. */
      readonly at: string
      /** How long the request took, ms. */
      readonly durationMs?: number
      /** The status of the answer. */
      readonly status?: number
      /** The class of the error. */
      readonly error?: "timeout" | "connect-timeout" | "refused" | "reset" | "unreachable" | "connection" | "dns" | "certificate" | "handshake" | "address" | "protocol" | "redirect" | "interrupted"
    }>
  }
  /** The value measured last, once it differed from `value`. Renewed once a minute at most. */
  readonly currentValue?: number
  /** Absent if it is about the system. */
  readonly tenant?: string
  /** Absent if it is not about one endpoint. */
  readonly endpoint?: string
}

export interface AlertList {
  /** The alerts: about the system, then about tenants, then about endpoints; of each the newest first. */
  readonly alerts: ReadonlyArray<Alert>
  /** How many are raised, on all pages together. */
  readonly total: number
  /** The `cursor` of the next page; absent at the end. */
  readonly next?: string
}

/** Thresholds for alerts. One that is left out is that of the level above. */
export interface AlertThresholds {
  /** A warning if fewer deliveries than this succeed, percent. */
  readonly successWarnPercent?: "off" | number | undefined
  /** A critical alert if fewer deliveries than this succeed, percent. */
  readonly successCriticalPercent?: "off" | number | undefined
  /** A warning if the first attempt of more deliveries than this must be retried, percent. */
  readonly retriesPercent?: "off" | number | undefined
  /** A warning if more final answers than this are permanent failures, percent. */
  readonly permanentPercent?: "off" | number | undefined
  /** A warning if successful deliveries take more attempts than this on average. */
  readonly attemptsPerDelivery?: "off" | number | undefined
  /** A warning if half of the deliveries take longer than this from the event to success. */
  readonly medianTime?: "off" | string | undefined
  /** A warning if 1 of 100 deliveries takes longer than this from the event to success. */
  readonly p99Time?: "off" | string | undefined
  /** A warning at this many dead letters of one endpoint within the window. */
  readonly deadLetters?: "off" | number | undefined
  /** A warning at this many dead letters of all endpoints of a tenant within the window. */
  readonly tenantDeadLetters?: "off" | number | undefined
  /** A warning at this many sources of a tenant that refuse every request. */
  readonly sourcesRefusing?: "off" | number | undefined
  /** A warning at this many requests of a tenant in quarantine. */
  readonly quarantined?: "off" | number | undefined
  /** A warning at this many events of a tenant's sources that had not come in when these were last reconciled. */
  readonly providerLost?: "off" | number | undefined
  /** A warning at this many failed attempts in a row while the circuit is closed. */
  readonly failuresInRow?: "off" | number | undefined
  /** Whether an open circuit is an alert. */
  readonly circuitOpened?: "on" | "off" | undefined
  /** Whether a disabled endpoint is an alert. */
  readonly endpointDisabled?: "on" | "off" | undefined
  /** Whether a suspended endpoint is an alert. */
  readonly endpointSuspended?: "on" | "off" | undefined
  /** Whether it is an alert if an endpoint answers with one status as many times in a row as `alert` of its retry policy says for that status. */
  readonly statusInARow?: "on" | "off" | undefined
  /** The time over which all values are counted. */
  readonly window?: string | undefined
  /** With fewer deliveries than this, shares and times are not judged. */
  readonly samples?: number | undefined
}

/** When alerts are raised. */
export interface AlertThresholds_1 {
  /** Absent for the system. */
  readonly tenant?: string
  /** Of each alert; `off` and `on` for an alert as a whole, durations in words. */
  readonly thresholds: { readonly [name: string]: number | string }
  /** Whom to notify of problems of endpoints without a contact of their own. */
  readonly contact?: string
  /** The tenant whose operational endpoints get the alerts about the system. */
  readonly systemAlertsTo?: string
  /** The names of those that were set here. */
  readonly set: ReadonlyArray<string>
  /** All alerts about the tenant and its endpoints were turned off. */
  readonly off?: true
  /** The revision of what was set here; 0 where nothing was. */
  readonly revision: number
}

export interface AttemptList {
  /** The attempts. */
  readonly attempts: ReadonlyArray<LoggedAttempt>
  /** The `cursor` of the next page; absent at the end. */
  readonly next?: string
  /** The `cursor` of the page before, of what is newer; absent on the first. */
  readonly previous?: string
  /** The search for a page ends after 40 ms. The page then has what was found among everything newer than this (of a previous page: older), however little that is, and a cursor to continue with. */
  readonly searchedUntil: string | null
  /** How far the log is behind what happens. */
  readonly lag: {
    /** Facts that are stored and not yet seen. */
    readonly facts: number
    /** How long ago the newest fact that was seen was stored, if there are newer ones. If none is known it is 0, or how long ago that was looked at, where that is more than 5 s. */
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
  /** The status that a request for this event alone would get: 201 stored, 200 there already, 400 not valid, 409 another event has the id, 413 too large, 503 not known to be stored. */
  readonly status: 201 | 200 | 400 | 409 | 413 | 503
  /** Its id, which receivers get. */
  readonly id?: string
  /** Its sequence in the stream of events; absent where tenants have streams of their own. */
  readonly seq?: number
  /** Why it was not stored, and what to do. */
  readonly detail?: string
  /** With 503: seconds until it is worth sending it again, with the same id. The header Retry-After has the longest. */
  readonly retryAfter?: number
  /** What is wrong with it, field by field. */
  readonly errors?: ReadonlyArray<{
    /** The field of the input, with dots for a field of a field: `circuit.coolDown`. Empty for the input as a whole. */
    readonly field: string
    /** The sentence about the field, without its subject: `must be between 1 and 1000`. It names other fields in backticks. */
    readonly message: string
  }>
}

export interface BatchResult {
  /** How many were stored. */
  readonly stored: number
  /** How many were there already. */
  readonly duplicates: number
  /** How many were not stored: see each. */
  readonly failed: number
  /** What became of each, in the order of the request. */
  readonly events: ReadonlyArray<BatchAnswer>
}

/** An endpoint after a change. */
export interface ChangedEndpoint {
  /** The version of the record. */
  readonly v: 1
  /** Its tenant. */
  readonly tenant: string
  /** Its id within the tenant. */
  readonly id: string
  /** Created each time that an endpoint of this name is added. */
  readonly generation: string
  /** Where requests go: http or https. */
  readonly url: string
  /** Types of the events that the endpoint gets, as NATS wildcards: `invoice.paid`, `invoice.*`, `>`. (Default: all) */
  readonly types: ReadonlyArray<string>
  /** How requests are signed: Standard Webhooks, Stripe's or GitHub's way, or not at all. (Default: standard) */
  readonly sign: "standard" | "standard-ed25519" | "stripe" | "github" | "none"
  /** Name of the signature header, if `sign` is stripe. (Default: petrel-signature) */
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
  /** Fewer concurrent requests while the receiver answers 429 or 503, times out or slows down. (Default: false) */
  readonly adapt?: boolean
  /** `slack`: bodies as incoming webhooks of chat tools take them. Only for an endpoint that gets nothing but alerts. (Default: the event's bytes) */
  readonly format?: "slack"
  /** Requests per second, and the burst after a pause: as numbers, or in words such as `20/s burst 40`. (Default: no limit) */
  readonly rate?: RateLimit
  /** After which failures the endpoint gets only probes, and when it is given up. (Default: {}, the defaults) */
  readonly circuit: {
    readonly state?: "closed" | "open" | "half-open"
    readonly since?: string
    /** When the next probe may be sent. Absent for a closed circuit. */
    readonly nextProbeAt?: string
    /** Successful probes of a half-open circuit. */
    readonly probesSucceeded?: number
    /** The delivery of the latest probe. */
    readonly lastProbe?: string
    /** Why it opened. */
    readonly why?: string
    /** The circuit has closed, and deliveries come back gradually. */
    readonly ramping?: true
    readonly failures: number
    readonly rate: "none" | {
      /** How many of the attempts have to fail, percent. */
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
  /** How many redirects are followed, 0 to 10. With 0, a 3xx is a permanent failure. (Default: 0) */
  readonly redirects: number
  /** Other origins that redirects may lead to, such as https://eu.example.com. (Default: none) */
  readonly redirectsTo?: ReadonlyArray<string>
  /** Headers that it gets with every request, without their values. */
  readonly headers: { readonly [name: string]: string }
  /** Headers of the publisher that the endpoint gets, by name: true adds one, null removes one. (Default: none) */
  readonly forwardHeaders?: ReadonlyArray<string>
  /** Whom to notify of problems. Alerts about the endpoint carry it. (Default: nobody) */
  readonly contact?: string
  /** What the endpoint is for: 1 to 500 characters on one line. (Default: none) */
  readonly description?: string
  /** Entries for your own programs, such as a customer's number: up to 20, with names of up to 64 bytes and values of up to 512. The history keeps them for good: store no credentials and nothing that must be erased. (Default: {}) */
  readonly metadata?: { readonly [name: string]: string }
  /** When alerts about the endpoint are raised. (Default: {}, the tenant's thresholds) */
  readonly alerts?: "off" | AlertThresholds
  /** Its signing secrets, newest first, without their values. */
  readonly secrets: ReadonlyArray<{
    /** The secret. */
    readonly value: string
    /** When it was made. */
    readonly createdAt: string
    /** Until when it is valid; absent for the present one. */
    readonly until?: string
  }>
  /** Since when and why it gets no events. */
  readonly disabled?: {
    /** Since when. */
    readonly at: string
    /** Why. */
    readonly reason: string
    /** Who did it. */
    readonly by: string
  }
  /** Since when and why it was given up; its deliveries wait. */
  readonly suspended?: {
    /** Since when. */
    readonly at: string
    /** Why. */
    readonly reason: string
    /** Who did it. */
    readonly by: string
  }
  /** Since when and why its deliveries are held back. */
  readonly paused?: {
    /** Since when. */
    readonly at: string
    /** Who did it. */
    readonly by: string
    /** Why. */
    readonly reason?: string
    /** The endpoint was made again and its URL is not known: it is not resumed before it has one. */
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
  /** What is valid but seldom intended. */
  readonly cautions: ReadonlyArray<string>
  /** The settings that differ from before. */
  readonly changed: ReadonlyArray<string>
}

/** Settings of a tenant, or of the system, after a change. */
export interface ChangedTenantSettings {
  /** Absent for the system. */
  readonly tenant?: string
  /** Concurrent requests of all of the tenant's endpoints whose URLs have the same host name, 1 to 100,000. (Default: no limit) */
  readonly hostCap?: number
  /** Longest time-out of an attempt that endpoints of the tenant may have, 1 second to 24 hours, such as "15 minutes". A longer one that is stored is cut to it. (Default: the system's, else 5 minutes) */
  readonly maxTimeout?: string
  /** How many endpoints a tenant may have, 0 to 1,000,000. Those of the system hold for tenants without a number of their own. (Default: 1,000) */
  readonly maxEndpoints?: number
  /** How many tokens of the HTTP API, and as many links and sessions of browsers, a tenant may have, 0 to 1,000,000. Those of the system hold for tenants without a number of their own. (Default: 1,000) */
  readonly maxTokens?: number
  /** Headers of the publisher that all of the tenant's endpoints get, besides those that an endpoint names, by name: true adds one, null removes one. (Default: none) */
  readonly forwardHeaders: ReadonlyArray<string>
  /** What the system has set, which holds for the tenant's endpoints, too. Absent for the system. */
  readonly system?: {
    readonly hostCap?: number
    readonly maxTimeout?: string
    readonly maxEndpoints?: number
    readonly maxTokens?: number
    readonly forwardHeaders: ReadonlyArray<string>
  }
  /** The revision in the endpoints bucket; 0 where nothing was ever set. */
  readonly revision: number
  /** The settings that differ from before. */
  readonly changed: ReadonlyArray<string>
}

export interface Circuit {
  /** Transient failures in a row that open it. */
  readonly failures?: number | undefined
  /** The share of failures that opens it, or `none`. */
  readonly rate?: "none" | {
    /** How many of the attempts have to fail, percent. */
    readonly percent: number
    readonly of: number
    readonly over: string
  } | undefined
  readonly coolDown?: string | undefined
  readonly maxCoolDown?: string | undefined
  /** Probes in a row that have to succeed to close it. */
  readonly successes?: number | undefined
  /** What happens to deliveries while it is open. */
  readonly onOpen?: "backlog" | "dead-letter" | undefined
  readonly giveUpAfter?: string | undefined
  /** Permanent failures in a row at which it is given up. */
  readonly permanentFailures?: number | undefined
  /** What happens to an endpoint that is given up. */
  readonly onGiveUp?: "disable" | "suspend" | undefined
  /** What happens to an endpoint that answers 410. */
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
  /** `link`: it opens one session in a browser, once, and does nothing else. `session`: it is a browser's, in a cookie. (Default: a program's) */
  readonly use?: "link" | "session"
  /** Until when a link opens a session. */
  readonly opensUntil?: string
  /** The one endpoint of its tenant that it is about: everything else is as if it was not there. */
  readonly endpoint?: string
  /** What the pages of a portal show. */
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
  /** The name of the tenant. */
  readonly tenant: string
  /** The id of the endpoint. */
  readonly endpoint: string
  /** The event's id. */
  readonly event: string
  /** The sequence of the event in the event stream. */
  readonly eventSeq: number
  /** When the event was stored. */
  readonly eventAt: string
  /** The type of the event. */
  readonly type: string
  /** Which round of the delivery: `0` is the first. */
  readonly round: string
  /** Why it ended without success. */
  readonly reason: "permanent" | "attempts" | "status-limit" | "deadline" | "endpoint-disabled" | "endpoint-removed" | "circuit-open" | "backlog-full" | "defect" | "event-gone" | "gone"
  /** Requests made in this round. */
  readonly attempts: number
  /** How many of them were probes: they leave its place in the policy's schedule as it is. */
  readonly probes?: number
  /** When the first attempt was made. */
  readonly firstAttemptAt?: string
  /** When the last attempt was made. */
  readonly lastAttemptAt?: string
  /** The delay that `decorrelated` backoff has drawn last, ms: the next draw depends on it. */
  readonly delayMs?: number
  /** Present if the last answer has a limit of its own in the policy. */
  readonly inARow?: {
    /** The status or class that the rule names: `404`, `5xx`. */
    readonly status: string
    /** Requests that were answered so, without probes. */
    readonly attempts: number
    /** When the first of them was answered. */
    readonly since: string
  }
  /** The status of the last answer. */
  readonly lastStatus?: number
  /** The class of the last error. */
  readonly lastErrorClass?: "timeout" | "connect-timeout" | "refused" | "reset" | "unreachable" | "connection" | "dns" | "certificate" | "handshake" | "address" | "protocol" | "redirect" | "interrupted"
  /** The last error. */
  readonly lastError?: string
  /** The last attempt was final, and the delivery ends for this reason. */
  readonly ends?: "permanent" | "attempts" | "status-limit" | "deadline" | "endpoint-disabled" | "endpoint-removed" | "circuit-open" | "backlog-full" | "defect" | "event-gone" | "gone"
  /** When it would have been given up. */
  readonly deadline: string
  /** When it ended. */
  readonly deadAt: string
  /** The place that its message was moved from. */
  readonly origin?: string
  /** What came of sending it again. */
  readonly redelivered?: {
    /** Which round of the delivery: `0` is the first. */
    readonly round: string
    /** When. */
    readonly at: string
    /** Who asked for it. */
    readonly by?: string | null
    /** `waiting` while the round is open, otherwise how it ended. */
    readonly outcome: "waiting" | "delivered" | "delivered-late" | "dead-lettered"
    /** When it ended. */
    readonly endedAt?: string | null
    /** Id of the new dead letter, if the round was dead-lettered. */
    readonly dead?: number | null
  }
  /** The receiver has it after all: a former owner recorded the success. */
  readonly deliveredLate?: {
    /** When. */
    readonly at: string
    /** The id of the worker. */
    readonly worker?: string | null
  }
}

/** A dead letter: what was sent, and how each attempt went. */
export interface DeadLetterDetail {
  /** Its number. */
  readonly id: number
  /** The name of the tenant. */
  readonly tenant: string
  /** The id of the endpoint. */
  readonly endpoint: string
  /** The event's id. */
  readonly event: string
  /** The sequence of the event in the event stream. */
  readonly eventSeq: number
  /** When the event was stored. */
  readonly eventAt: string
  /** The type of the event. */
  readonly type: string
  /** Which round of the delivery: `0` is the first. */
  readonly round: string
  /** Why it ended without success. */
  readonly reason: "permanent" | "attempts" | "status-limit" | "deadline" | "endpoint-disabled" | "endpoint-removed" | "circuit-open" | "backlog-full" | "defect" | "event-gone" | "gone"
  /** Requests made in this round. */
  readonly attempts: number
  /** How many of them were probes: they leave its place in the policy's schedule as it is. */
  readonly probes?: number
  /** When the first attempt was made. */
  readonly firstAttemptAt?: string
  /** When the last attempt was made. */
  readonly lastAttemptAt?: string
  /** The delay that `decorrelated` backoff has drawn last, ms: the next draw depends on it. */
  readonly delayMs?: number
  /** Present if the last answer has a limit of its own in the policy. */
  readonly inARow?: {
    /** The status or class that the rule names: `404`, `5xx`. */
    readonly status: string
    /** Requests that were answered so, without probes. */
    readonly attempts: number
    /** When the first of them was answered. */
    readonly since: string
  }
  /** The status of the last answer. */
  readonly lastStatus?: number
  /** The class of the last error. */
  readonly lastErrorClass?: "timeout" | "connect-timeout" | "refused" | "reset" | "unreachable" | "connection" | "dns" | "certificate" | "handshake" | "address" | "protocol" | "redirect" | "interrupted"
  /** The last error. */
  readonly lastError?: string
  /** The last attempt was final, and the delivery ends for this reason. */
  readonly ends?: "permanent" | "attempts" | "status-limit" | "deadline" | "endpoint-disabled" | "endpoint-removed" | "circuit-open" | "backlog-full" | "defect" | "event-gone" | "gone"
  /** When it would have been given up. */
  readonly deadline: string
  /** When it ended. */
  readonly deadAt: string
  /** The place that its message was moved from. */
  readonly origin?: string
  /** What came of sending it again. */
  readonly redelivered?: {
    /** Which round of the delivery: `0` is the first. */
    readonly round: string
    /** When. */
    readonly at: string
    /** Who asked for it. */
    readonly by?: string | null
    /** `waiting` while the round is open, otherwise how it ended. */
    readonly outcome: "waiting" | "delivered" | "delivered-late" | "dead-lettered"
    /** When it ended. */
    readonly endedAt?: string | null
    /** Id of the new dead letter, if the round was dead-lettered. */
    readonly dead?: number | null
  }
  /** The receiver has it after all: a former owner recorded the success. */
  readonly deliveredLate?: {
    /** When. */
    readonly at: string
    /** The id of the worker. */
    readonly worker?: string | null
  }
  /** When its round began. */
  readonly began: string
  /** The headers that every receiver gets, by their usual names, without the signature and those of the endpoint's configuration. */
  readonly headers: { readonly [name: string]: string }
  /** Size of the body. */
  readonly bytes: number
  /** The body, if it is text, for tokens with the scope payloads:read. */
  readonly body?: string
  /** The body, if it is not text, for tokens with the scope payloads:read. */
  readonly bodyBase64?: string
  /** The facts of its attempts; what the receiver answered, for tokens with the scope payloads:read. */
  readonly history: ReadonlyArray<{ readonly [name: string]: unknown }>
}

export interface DeadLetterList {
  /** The dead letters. */
  readonly deadLetters: ReadonlyArray<DeadLetter>
  /** The `cursor` of the next page; absent at the end. */
  readonly next?: string
  /** The `cursor` of the page before, of what is older; absent on the first. */
  readonly previous?: string
}

/** One event for one endpoint: its rounds and attempts, and why it waits. */
export interface Delivery {
  /** `<event id>.<endpoint id>` */
  readonly delivery: string
  /** The name of the tenant. */
  readonly tenant: string
  /** The id of the endpoint. */
  readonly endpoint: string
  /** The id of the event. */
  readonly event?: string
  /** The sequence of the event in the event stream. */
  readonly eventSeq: number
  /** The type of the event. */
  readonly type?: string
  /** The event's traceparent, once there was an attempt. */
  readonly trace?: string
  /** The rounds of the delivery, the first one first. */
  readonly rounds: ReadonlyArray<{
    /** Which round of the delivery: `0` is the first. */
    readonly round: string
    /** What began it; null if that is no longer in the history. */
    readonly begun: {
      /** What it was. */
      readonly by: "routed" | "redelivered" | "replayed"
      /** When. */
      readonly at: string
      /** When the delivery is given up. */
      readonly deadline?: string
    } | null
    /** The attempts that are known, in order. */
    readonly attempts: ReadonlyArray<{
      /** Its number in its round, from 1. */
      readonly number: number
      /** When. */
      readonly at: string
      /** Whether the delivery succeeded by it. */
      readonly isSuccess: boolean
      /** Sent while the circuit was half-open: it used up none of the policy's attempts. */
      readonly isProbe?: true
      /** The status of the answer. */
      readonly status?: number
      /** Why there was no complete answer. */
      readonly error?: {
        /** The class of the error. */
        readonly class: "timeout" | "connect-timeout" | "refused" | "reset" | "unreachable" | "connection" | "dns" | "certificate" | "handshake" | "address" | "protocol" | "redirect" | "interrupted"
        /** What the error says. */
        readonly message: string
      } | null
      /** How long the request took, ms. */
      readonly durationMs?: number
      /** When the next attempt is due. */
      readonly nextAttemptAt?: string
      /** The id of the worker. */
      readonly worker?: string
      /** How long it took to connect, ms, if a connection was made for it. */
      readonly connectMs?: number
      /** When the answer began, ms since the beginning of the attempt. */
      readonly firstByteMs?: number
      /** Absent if there was none, or if it is not kept. */
      readonly response?: {
        /** A selection of headers, by lower-case name. */
        readonly headers: { readonly [name: string]: string }
        /** The first 1 KiB, as text. */
        readonly body: string
        /** Bytes read; reading stops at 64 KiB. */
        readonly bytes: number
      }
      /** The redirects that were followed. `response` is the answer of the last address. */
      readonly redirects?: ReadonlyArray<{
        /** The status of the answer that redirected. */
        readonly status: number
        /** Where to, without the query, which often carries tokens. */
        readonly to: string
      }>
    }>
    /** The highest number of an attempt that is known; older ones may no longer be in the history. */
    readonly lastAttempt: number
    /** Whether the round is open, or how it ended. */
    readonly state: "open" | "delivered" | "dead-lettered" | "discarded"
    /** How it ended. */
    readonly end?: {
      /** When. */
      readonly at: string
      /** Why it was given up. */
      readonly reason?: string
      /** The dead letter that it left, or that the late success resolves. */
      readonly dead?: number
      /** How many of its attempts were probes, where it ended without success. */
      readonly probes?: number
      /** A former owner recorded the success. */
      readonly late?: true
    }
    /** When its dead letter was discarded. */
    readonly discardedAt?: string
    /** Until when it waits for its next attempt, and how. */
    readonly waits?: {
      /** Until when. */
      readonly until: string
      /** What it was. */
      readonly by?: "nak" | "schedule"
    }
    /** Facts that repeat others. */
    readonly repeats: number
    /** The message of an open round; null if none was found. */
    readonly waitsIn?: {
      /** The stream that has it. */
      readonly stream: string
      /** Its sequence there. */
      readonly seq: number
      /** Null if this version cannot read it. */
      readonly deadline: string | null
      /** Its position among those that wait in its endpoint's backlog, 1 for the first. */
      readonly position?: number
      /** How many wait there. */
      readonly of?: number
    } | null
    /** What the owner of its partition is doing with an open round that it has in memory. */
    readonly inMemory?: {
      /** The id of the worker. */
      readonly worker: string
      /** What it is doing. */
      readonly mode: "waiting" | "deciding" | "sending" | "recording" | "released" | "returned" | "cancelled"
      /** Time since it joined its lane; of a task that was begun, since then, ms. */
      readonly forMs: number
    }
    /** What blocks an open round, the most important first. */
    readonly holds?: ReadonlyArray<{
      /** What blocks it. */
      readonly by: "missing" | "unreadable" | "event" | "dead-letters" | "endpoint-removed" | "endpoint-disabled" | "no-worker" | "clock" | "time" | "paused" | "suspended" | "circuit" | "retry-after" | "cap" | "rate" | "host-cap" | "turn" | "answer" | "outcome"
      /** What blocks it, as a sentence. */
      readonly says: string
      /** Until when. */
      readonly until?: string
      /** What frees it. */
      readonly freedBy: string
    }>
  }>
  /** How far the delivery log was behind the history, if the rounds are from there. */
  readonly lag?: {
    /** Facts that are stored and not yet seen. */
    readonly facts: number
    /** How long ago the newest fact that was seen was stored, if there are newer ones. If none is known it is 0, or how long ago that was looked at, where that is more than 5 s. */
    readonly ms: number
  }
}

export interface DeliveryList {
  /** The deliveries. */
  readonly deliveries: ReadonlyArray<LoggedDelivery>
  /** The `cursor` of the next page; absent at the end. */
  readonly next?: string
  /** The `cursor` of the page before, of what is newer; absent on the first. */
  readonly previous?: string
  /** The search for a page ends after 40 ms. The page then has what was found among everything newer than this (of a previous page: older), however little that is, and a cursor to continue with. */
  readonly searchedUntil: string | null
  /** How far the log is behind what happens. */
  readonly lag: {
    /** Facts that are stored and not yet seen. */
    readonly facts: number
    /** How long ago the newest fact that was seen was stored, if there are newer ones. If none is known it is 0, or how long ago that was looked at, where that is more than 5 s. */
    readonly ms: number
  }
}

/** Why an endpoint gets nothing or fails, and what to do. */
export interface Diagnosis {
  /** The name of the tenant. */
  readonly tenant: string
  /** The id of the endpoint. */
  readonly id: string
  /** When it was looked at. */
  readonly at: string
  /** Where its deliveries go. */
  readonly url: string
  /** What was looked at. */
  readonly checks: ReadonlyArray<{
    /** What was looked at. */
    readonly name: "state" | "worker" | "events" | "name" | "connection" | "certificate" | "failures" | "rate" | "circuit" | "waiting" | "dead letters"
    /** Whether it is well. */
    readonly result: "ok" | "unknown" | "warning" | "problem"
    /** What was found. */
    readonly says: string
    /** What to do. Absent if there is nothing to do. */
    readonly advice?: string
  }>
  /** What came of a connection. */
  readonly connection?: {
    /** The host of the URL. */
    readonly host: string
    /** The port. */
    readonly port: number
    /** Whether TLS is used. */
    readonly isSecure: boolean
    /** The look-up of the name, ms. Absent if the host is an address. */
    readonly lookupMs?: number
    /** Why no address is known, or none may be connected to. */
    readonly error?: {
      /** The class of the error. */
      readonly class: "timeout" | "connect-timeout" | "refused" | "reset" | "unreachable" | "connection" | "dns" | "certificate" | "handshake" | "address" | "protocol" | "redirect" | "interrupted"
      /** What the error says. */
      readonly message: string
    }
    /** Addresses that this worker may not connect to. They are not named: see `AddressRefused`. */
    readonly refused: number
    /** The allowed addresses, in the order in which requests try them. */
    readonly addresses: ReadonlyArray<{
      /** The address. */
      readonly address: string
      /** TCP and TLS together, ms. */
      readonly durationMs: number
      /** Absent for http, and if no handshake was completed. */
      readonly tls?: {
        /** Such as TLSv1.3. */
        readonly protocol: string
        /** The receiver's own certificate first. */
        readonly chain: ReadonlyArray<{
          /** Its common name, or its first alternative name. */
          readonly subject: string
          /** Who issued the certificate. */
          readonly issuer: string
          /** When the certificate begins to be valid. */
          readonly validFrom: string
          /** When the certificate ceases to be valid. */
          readonly validUntil: string
        }>
        /** Why requests would not trust the certificate. */
        readonly distrust?: string
      }
      /** Why there is no connection. */
      readonly error?: {
        /** The class of the error. */
        readonly class: "timeout" | "connect-timeout" | "refused" | "reset" | "unreachable" | "connection" | "dns" | "certificate" | "handshake" | "address" | "protocol" | "redirect" | "interrupted"
        /** What the error says. */
        readonly message: string
      }
    }>
  }
  /** What to do, the most important first. Empty if nothing is wrong. */
  readonly advice: ReadonlyArray<string>
}

export interface DiscardedDeadLetter {
  /** The number of the dead letter. */
  readonly id: number
  /** It is gone. */
  readonly discarded: true
}

export interface DiscardedSeveral {
  /** What was discarded. */
  readonly discarded: ReadonlyArray<{
    /** Its number, in the order in which all of it came. */
    readonly number: number
    /** The name of the tenant. */
    readonly tenant: string
    /** The id of the source. */
    readonly source: string
    /** The name of the provider. */
    readonly provider: string
    /** Why it could not become an event. */
    readonly reason: "unreadable" | "id-collision" | "invalid"
    /** What is wrong, in a sentence. */
    readonly problem: string
    /** When it came in. */
    readonly at: string
    /** Size in bytes. */
    readonly bytes: number
    /** The media type of the body. */
    readonly contentType: string
    /** The sender's id and type, if they could be read. */
    readonly event?: string
    /** The type of the event. */
    readonly type?: string
    /** Headers of the request, and its bytes in base64: where one is shown. */
    readonly headers?: { readonly [name: string]: string }
    /** The body that came in. */
    readonly body?: string
  }>
  /** What stays in the quarantine, and why. */
  readonly left: ReadonlyArray<{
    /** Its number in the quarantine. */
    readonly number: number
    /** What is wrong, in a sentence. */
    readonly problem: string
  }>
}

/** An endpoint: its settings, and its health. */
export interface Endpoint {
  /** The version of the record. */
  readonly v: 1
  /** Its tenant. */
  readonly tenant: string
  /** Its id within the tenant. */
  readonly id: string
  /** Created each time that an endpoint of this name is added. */
  readonly generation: string
  /** Where requests go: http or https. */
  readonly url: string
  /** Types of the events that the endpoint gets, as NATS wildcards: `invoice.paid`, `invoice.*`, `>`. (Default: all) */
  readonly types: ReadonlyArray<string>
  /** How requests are signed: Standard Webhooks, Stripe's or GitHub's way, or not at all. (Default: standard) */
  readonly sign: "standard" | "standard-ed25519" | "stripe" | "github" | "none"
  /** Name of the signature header, if `sign` is stripe. (Default: petrel-signature) */
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
  /** Fewer concurrent requests while the receiver answers 429 or 503, times out or slows down. (Default: false) */
  readonly adapt?: boolean
  /** `slack`: bodies as incoming webhooks of chat tools take them. Only for an endpoint that gets nothing but alerts. (Default: the event's bytes) */
  readonly format?: "slack"
  /** Requests per second, and the burst after a pause: as numbers, or in words such as `20/s burst 40`. (Default: no limit) */
  readonly rate?: RateLimit
  /** After which failures the endpoint gets only probes, and when it is given up. (Default: {}, the defaults) */
  readonly circuit: {
    readonly state?: "closed" | "open" | "half-open"
    readonly since?: string
    /** When the next probe may be sent. Absent for a closed circuit. */
    readonly nextProbeAt?: string
    /** Successful probes of a half-open circuit. */
    readonly probesSucceeded?: number
    /** The delivery of the latest probe. */
    readonly lastProbe?: string
    /** Why it opened. */
    readonly why?: string
    /** The circuit has closed, and deliveries come back gradually. */
    readonly ramping?: true
    readonly failures: number
    readonly rate: "none" | {
      /** How many of the attempts have to fail, percent. */
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
  /** How many redirects are followed, 0 to 10. With 0, a 3xx is a permanent failure. (Default: 0) */
  readonly redirects: number
  /** Other origins that redirects may lead to, such as https://eu.example.com. (Default: none) */
  readonly redirectsTo?: ReadonlyArray<string>
  /** Headers that it gets with every request, without their values. */
  readonly headers: { readonly [name: string]: string }
  /** Headers of the publisher that the endpoint gets, by name: true adds one, null removes one. (Default: none) */
  readonly forwardHeaders?: ReadonlyArray<string>
  /** Whom to notify of problems. Alerts about the endpoint carry it. (Default: nobody) */
  readonly contact?: string
  /** What the endpoint is for: 1 to 500 characters on one line. (Default: none) */
  readonly description?: string
  /** Entries for your own programs, such as a customer's number: up to 20, with names of up to 64 bytes and values of up to 512. The history keeps them for good: store no credentials and nothing that must be erased. (Default: {}) */
  readonly metadata?: { readonly [name: string]: string }
  /** When alerts about the endpoint are raised. (Default: {}, the tenant's thresholds) */
  readonly alerts?: "off" | AlertThresholds
  /** Its signing secrets, newest first, without their values. */
  readonly secrets: ReadonlyArray<{
    /** The secret. */
    readonly value: string
    /** When it was made. */
    readonly createdAt: string
    /** Until when it is valid; absent for the present one. */
    readonly until?: string
  }>
  /** Since when and why it gets no events. */
  readonly disabled?: {
    /** Since when. */
    readonly at: string
    /** Why. */
    readonly reason: string
    /** Who did it. */
    readonly by: string
  }
  /** Since when and why it was given up; its deliveries wait. */
  readonly suspended?: {
    /** Since when. */
    readonly at: string
    /** Why. */
    readonly reason: string
    /** Who did it. */
    readonly by: string
  }
  /** Since when and why its deliveries are held back. */
  readonly paused?: {
    /** Since when. */
    readonly at: string
    /** Who did it. */
    readonly by: string
    /** Why. */
    readonly reason?: string
    /** The endpoint was made again and its URL is not known: it is not resumed before it has one. */
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
  /** Its failures, and when it may be sent to. */
  readonly health: {
    /** Transient failures since the endpoint last gave any other answer. */
    readonly failuresInRow: number
    /** Permanent failures since the last success. */
    readonly permanentInRow: number
    /** The time of the first of the consecutive failures. */
    readonly failingSince?: string
    /** When the endpoint is disabled if it keeps failing. */
    readonly giveUpAt?: string
    /** The end of the receiver's Retry-After. */
    readonly notBefore?: string
    /** The status of the latest failure. */
    readonly lastStatus?: number
    /** The last error. */
    readonly lastError?: string
  }
}

export interface EndpointChange {
  /** The name of the tenant. */
  readonly tenant: string
  /** The id of the endpoint. */
  readonly id: string
  /** The revision in the endpoints bucket. */
  readonly revision: number
  /** When the bucket stored it. */
  readonly at: string
  /** Its author, if known. */
  readonly by?: string
  /** What happened. */
  readonly change: "added" | "changed" | "removed" | "unreadable"
  /** The settings that differ. */
  readonly differences: ReadonlyArray<{
    /** The name in the configuration, such as `circuit.failures` for a part of a setting. Of `url`, only scheme, host and port are shown: if these are equal, the path or the query differs. */
    readonly setting: string
    /** JSON; absent if it is not set. */
    readonly from?: unknown
    /** JSON; absent if it is no longer set. */
    readonly to?: unknown
  }>
}

/** An endpoint: its settings, its health, and what waits for it. */
export interface EndpointDetail {
  /** The version of the record. */
  readonly v: 1
  /** Its tenant. */
  readonly tenant: string
  /** Its id within the tenant. */
  readonly id: string
  /** Created each time that an endpoint of this name is added. */
  readonly generation: string
  /** Where requests go: http or https. */
  readonly url: string
  /** Types of the events that the endpoint gets, as NATS wildcards: `invoice.paid`, `invoice.*`, `>`. (Default: all) */
  readonly types: ReadonlyArray<string>
  /** How requests are signed: Standard Webhooks, Stripe's or GitHub's way, or not at all. (Default: standard) */
  readonly sign: "standard" | "standard-ed25519" | "stripe" | "github" | "none"
  /** Name of the signature header, if `sign` is stripe. (Default: petrel-signature) */
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
  /** Fewer concurrent requests while the receiver answers 429 or 503, times out or slows down. (Default: false) */
  readonly adapt?: boolean
  /** `slack`: bodies as incoming webhooks of chat tools take them. Only for an endpoint that gets nothing but alerts. (Default: the event's bytes) */
  readonly format?: "slack"
  /** Requests per second, and the burst after a pause: as numbers, or in words such as `20/s burst 40`. (Default: no limit) */
  readonly rate?: RateLimit
  /** After which failures the endpoint gets only probes, and when it is given up. (Default: {}, the defaults) */
  readonly circuit: {
    readonly state?: "closed" | "open" | "half-open"
    readonly since?: string
    /** When the next probe may be sent. Absent for a closed circuit. */
    readonly nextProbeAt?: string
    /** Successful probes of a half-open circuit. */
    readonly probesSucceeded?: number
    /** The delivery of the latest probe. */
    readonly lastProbe?: string
    /** Why it opened. */
    readonly why?: string
    /** The circuit has closed, and deliveries come back gradually. */
    readonly ramping?: true
    readonly failures: number
    readonly rate: "none" | {
      /** How many of the attempts have to fail, percent. */
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
  /** How many redirects are followed, 0 to 10. With 0, a 3xx is a permanent failure. (Default: 0) */
  readonly redirects: number
  /** Other origins that redirects may lead to, such as https://eu.example.com. (Default: none) */
  readonly redirectsTo?: ReadonlyArray<string>
  /** Headers that it gets with every request, without their values. */
  readonly headers: { readonly [name: string]: string }
  /** Headers of the publisher that the endpoint gets, by name: true adds one, null removes one. (Default: none) */
  readonly forwardHeaders?: ReadonlyArray<string>
  /** Whom to notify of problems. Alerts about the endpoint carry it. (Default: nobody) */
  readonly contact?: string
  /** What the endpoint is for: 1 to 500 characters on one line. (Default: none) */
  readonly description?: string
  /** Entries for your own programs, such as a customer's number: up to 20, with names of up to 64 bytes and values of up to 512. The history keeps them for good: store no credentials and nothing that must be erased. (Default: {}) */
  readonly metadata?: { readonly [name: string]: string }
  /** When alerts about the endpoint are raised. (Default: {}, the tenant's thresholds) */
  readonly alerts?: "off" | AlertThresholds
  /** Its signing secrets, newest first, without their values. */
  readonly secrets: ReadonlyArray<{
    /** The secret. */
    readonly value: string
    /** When it was made. */
    readonly createdAt: string
    /** Until when it is valid; absent for the present one. */
    readonly until?: string
  }>
  /** Since when and why it gets no events. */
  readonly disabled?: {
    /** Since when. */
    readonly at: string
    /** Why. */
    readonly reason: string
    /** Who did it. */
    readonly by: string
  }
  /** Since when and why it was given up; its deliveries wait. */
  readonly suspended?: {
    /** Since when. */
    readonly at: string
    /** Why. */
    readonly reason: string
    /** Who did it. */
    readonly by: string
  }
  /** Since when and why its deliveries are held back. */
  readonly paused?: {
    /** Since when. */
    readonly at: string
    /** Who did it. */
    readonly by: string
    /** Why. */
    readonly reason?: string
    /** The endpoint was made again and its URL is not known: it is not resumed before it has one. */
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
  /** Its failures, and when it may be sent to. */
  readonly health: {
    /** Transient failures since the endpoint last gave any other answer. */
    readonly failuresInRow: number
    /** Permanent failures since the last success. */
    readonly permanentInRow: number
    /** The time of the first of the consecutive failures. */
    readonly failingSince?: string
    /** When the endpoint is disabled if it keeps failing. */
    readonly giveUpAt?: string
    /** The end of the receiver's Retry-After. */
    readonly notBefore?: string
    /** The status of the latest failure. */
    readonly lastStatus?: number
    /** The last error. */
    readonly lastError?: string
  }
  /** The index of the partition. */
  readonly partition: number
  /** The worker that owns the partition. */
  readonly owner: string | null
  /** Requests that are under way. */
  readonly inFlight: number | null
  /** What waits for it, by place; null if no owner answers. */
  readonly waiting: {
    /** Deliveries in its owner's memory. */
    readonly memory: number | null
    /** Deliveries in the queue. */
    readonly queue: number
    /** Null if there are too many to count. */
    readonly schedules: number | null
    /** Deliveries that wait in backlogs. */
    readonly backlog: number
  }
  /** Attempts within the last hour; null if no owner answers. */
  readonly lastHour: {
    /** Start of the count: later than an hour ago if the partition changed owner. */
    readonly since: string
    /** How many were made. */
    readonly attempts: number
    /** How many of them succeeded. */
    readonly delivered: number
    /** From 0 to 1; null without attempts. */
    readonly successRate: number | null
    /** Duration of an attempt, ms. */
    readonly p50Ms: number | null
    /** 95% are not longer, ms. */
    readonly p95Ms: number | null
  } | null
  /** Headers of the publisher that it gets: its tenant's, the system's, and its own. */
  readonly forwards: ReadonlyArray<string>
  /** The host whose requests are capped over several endpoints. Absent without a cap. */
  readonly sharedHost?: {
    /** The host of its URL. */
    readonly host: string
    /** Concurrent requests of all endpoints of the tenant. */
    readonly tenantCap?: number
    /** The same of all endpoints of all tenants. */
    readonly systemCap?: number
  }
  /** The longest time-out that counts, where one of its own or of its policies is longer. */
  readonly timeoutsCutTo?: string
  /** The alerts that are raised about it. */
  readonly raised: ReadonlyArray<{
    /** Identifies one raising of the alert. An alert that replaces it, and the clearing, carry the same id. */
    readonly id: string
    /** The name of the alert. */
    readonly name: "circuit-opened" | "endpoint-disabled" | "endpoint-suspended" | "dead-letters" | "success-low" | "success-critical" | "retries-high" | "permanent-high" | "attempts-high" | "median-slow" | "p99-slow" | "endpoint-not-found" | "status-repeated" | "failures-in-row" | "tenant-dead-letters" | "source-refusing" | "quarantined" | "provider-lost" | "events-unrouted" | "waiting-growing" | "circuits-open" | "deliveries-missing" | "disk-failed" | "system-dead-letters" | "outbox-stuck" | "outbox-set-aside" | "test"
    /** What it is about. */
    readonly about: "endpoint" | "tenant" | "system"
    /** How bad it is. */
    readonly level: "warn" | "critical"
    /** The value measured when the alert was raised or cleared. Absent if there was nothing to measure. */
    readonly value?: number
    /** The threshold that it has passed. */
    readonly threshold: number
    /** The unit of value and threshold. */
    readonly unit: string
    /** The window over which the value was measured, ms. */
    readonly windowMs: number
    /** When the first alert of this id was raised. */
    readonly raisedAt: string
    /** The alert that was raised under this id until now. */
    readonly replaces?: "circuit-opened" | "endpoint-disabled" | "endpoint-suspended" | "dead-letters" | "success-low" | "success-critical" | "retries-high" | "permanent-high" | "attempts-high" | "median-slow" | "p99-slow" | "endpoint-not-found" | "status-repeated" | "failures-in-row" | "tenant-dead-letters" | "source-refusing" | "quarantined" | "provider-lost" | "events-unrouted" | "waiting-growing" | "circuits-open" | "deliveries-missing" | "disk-failed" | "system-dead-letters" | "outbox-stuck" | "outbox-set-aside" | "test"
    /** Alerts about the same endpoint or tenant that are not raised themselves, because this one is. */
    readonly also?: ReadonlyArray<"circuit-opened" | "endpoint-disabled" | "endpoint-suspended" | "dead-letters" | "success-low" | "success-critical" | "retries-high" | "permanent-high" | "attempts-high" | "median-slow" | "p99-slow" | "endpoint-not-found" | "status-repeated" | "failures-in-row" | "tenant-dead-letters" | "source-refusing" | "quarantined" | "provider-lost" | "events-unrouted" | "waiting-growing" | "circuits-open" | "deliveries-missing" | "disk-failed" | "system-dead-letters" | "outbox-stuck" | "outbox-set-aside" | "test">
    /** Whom to notify: the endpoint's contact, or else the tenant's. */
    readonly contact?: string
    /** Attempts that failed in a row. */
    readonly failuresInRow?: number
    /** The status of the last failure. */
    readonly lastStatus?: number
    /** The status or class that an alert about answers in a row is about: `404`, `5xx`. */
    readonly status?: string
    /** The error of the last failure. */
    readonly lastError?: string
    /** In `dead-letters`: the delivery that was given up last when the alert was raised. */
    readonly lastDeadLetter?: {
      /** `<event id>.<endpoint id>` */
      readonly delivery: string
      /** The type of the event. */
      readonly type?: string
      /** Why it was given up. */
      readonly reason?: string
      /** The last ones, in order. */
      readonly attempts: ReadonlyArray<{
        /** Its number in its round, from 1. */
        readonly attempt: number
        /** When it was made. */
        readonly at: string
        /** How long the request took, ms. */
        readonly durationMs?: number
        /** The status of the answer. */
        readonly status?: number
        /** The class of the error. */
        readonly error?: "timeout" | "connect-timeout" | "refused" | "reset" | "unreachable" | "connection" | "dns" | "certificate" | "handshake" | "address" | "protocol" | "redirect" | "interrupted"
      }>
    }
    /** The value measured last, once it differed from `value`. Renewed once a minute at most. */
    readonly currentValue?: number
  }>
}

export interface EndpointHistory {
  /** The changes, the newest first. */
  readonly changes: ReadonlyArray<EndpointChange>
  /** The `cursor` of the next page; absent at the end. */
  readonly next?: string
}

export interface EndpointList {
  /** The endpoints. */
  readonly endpoints: ReadonlyArray<Endpoint>
  /** The `cursor` of the next page; absent at the end. */
  readonly next?: string
}

/** A change of an endpoint's settings: what is left out stays as it is, null removes a setting. */
export interface EndpointPatch {
  /** Where requests go: http or https. */
  readonly url?: string | undefined
  /** Types of the events that the endpoint gets, as NATS wildcards: `invoice.paid`, `invoice.*`, `>`. (Default: all) */
  readonly types?: ReadonlyArray<string> | undefined
  /** How requests are signed: Standard Webhooks, Stripe's or GitHub's way, or not at all. (Default: standard) */
  readonly sign?: "standard" | "standard-ed25519" | "stripe" | "github" | "none" | undefined
  /** Name of the signature header, if `sign` is stripe. (Default: petrel-signature) */
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
  /** Fewer concurrent requests while the receiver answers 429 or 503, times out or slows down. (Default: false) */
  readonly adapt?: boolean | undefined
  /** `slack`: bodies as incoming webhooks of chat tools take them. Only for an endpoint that gets nothing but alerts. (Default: the event's bytes) */
  readonly format?: "slack" | null | undefined
  /** Requests per second, and the burst after a pause: as numbers, or in words such as `20/s burst 40`. (Default: no limit) */
  readonly rate?: RateLimit | RateInWords | null | undefined
  /** After which failures the endpoint gets only probes, and when it is given up. (Default: {}, the defaults) */
  readonly circuit?: Circuit | undefined
  /** Time-out of an attempt, including redirects, such as "30 seconds". (Default: the policy's, else 30 seconds) */
  readonly timeout?: string | null | undefined
  /** Time limit of name look-up, TCP and TLS, such as "5 seconds". (Default: the policy's, else 10 seconds) */
  readonly connectTimeout?: string | null | undefined
  /** How many redirects are followed, 0 to 10. With 0, a 3xx is a permanent failure. (Default: 0) */
  readonly redirects?: number | undefined
  /** Other origins that redirects may lead to, such as https://eu.example.com. (Default: none) */
  readonly redirectsTo?: ReadonlyArray<string> | null | undefined
  /** Headers of every request to the endpoint, 20 at most. Their values are not shown again. */
  readonly headers?: { readonly [name: string]: string | null } | undefined
  /** Headers of the publisher that the endpoint gets, by name: true adds one, null removes one. (Default: none) */
  readonly forwardHeaders?: { readonly [name: string]: true | null } | undefined
  /** Whom to notify of problems. Alerts about the endpoint carry it. (Default: nobody) */
  readonly contact?: string | null | undefined
  /** What the endpoint is for: 1 to 500 characters on one line. (Default: none) */
  readonly description?: string | null | undefined
  /** Entries for your own programs, such as a customer's number: up to 20, with names of up to 64 bytes and values of up to 512. The history keeps them for good: store no credentials and nothing that must be erased. (Default: {}) */
  readonly metadata?: { readonly [name: string]: string | null } | undefined
  /** When alerts about the endpoint are raised. (Default: {}, the tenant's thresholds) */
  readonly alerts?: "off" | AlertThresholds | undefined
  /** The endpoint also gets its tenant's alerts, as events. (Default: false) */
  readonly operational?: boolean | undefined
  /** The signing secret. It replaces all former ones. (Default: a new one, which is shown) */
  readonly secret?: string | undefined
}

/** The secrets of an endpoint, for callers who may see them. */
export interface EndpointSecrets {
  /** The signing secrets, the newest first. */
  readonly secrets: ReadonlyArray<{
    /** The secret. */
    readonly value: string
    /** When it was made. */
    readonly createdAt: string
    /** Until when it is valid; absent for the present one. */
    readonly until?: string
  }>
  /** The headers that it is sent, with their values. */
  readonly headers: { readonly [name: string]: string }
}

/** An endpoint after a change of its state. */
export interface EndpointState {
  /** The version of the record. */
  readonly v: 1
  /** Its tenant. */
  readonly tenant: string
  /** Its id within the tenant. */
  readonly id: string
  /** Created each time that an endpoint of this name is added. */
  readonly generation: string
  /** Where requests go: http or https. */
  readonly url: string
  /** Types of the events that the endpoint gets, as NATS wildcards: `invoice.paid`, `invoice.*`, `>`. (Default: all) */
  readonly types: ReadonlyArray<string>
  /** How requests are signed: Standard Webhooks, Stripe's or GitHub's way, or not at all. (Default: standard) */
  readonly sign: "standard" | "standard-ed25519" | "stripe" | "github" | "none"
  /** Name of the signature header, if `sign` is stripe. (Default: petrel-signature) */
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
  /** Fewer concurrent requests while the receiver answers 429 or 503, times out or slows down. (Default: false) */
  readonly adapt?: boolean
  /** `slack`: bodies as incoming webhooks of chat tools take them. Only for an endpoint that gets nothing but alerts. (Default: the event's bytes) */
  readonly format?: "slack"
  /** Requests per second, and the burst after a pause: as numbers, or in words such as `20/s burst 40`. (Default: no limit) */
  readonly rate?: RateLimit
  /** After which failures the endpoint gets only probes, and when it is given up. (Default: {}, the defaults) */
  readonly circuit: {
    readonly state?: "closed" | "open" | "half-open"
    readonly since?: string
    /** When the next probe may be sent. Absent for a closed circuit. */
    readonly nextProbeAt?: string
    /** Successful probes of a half-open circuit. */
    readonly probesSucceeded?: number
    /** The delivery of the latest probe. */
    readonly lastProbe?: string
    /** Why it opened. */
    readonly why?: string
    /** The circuit has closed, and deliveries come back gradually. */
    readonly ramping?: true
    readonly failures: number
    readonly rate: "none" | {
      /** How many of the attempts have to fail, percent. */
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
  /** How many redirects are followed, 0 to 10. With 0, a 3xx is a permanent failure. (Default: 0) */
  readonly redirects: number
  /** Other origins that redirects may lead to, such as https://eu.example.com. (Default: none) */
  readonly redirectsTo?: ReadonlyArray<string>
  /** Headers that it gets with every request, without their values. */
  readonly headers: { readonly [name: string]: string }
  /** Headers of the publisher that the endpoint gets, by name: true adds one, null removes one. (Default: none) */
  readonly forwardHeaders?: ReadonlyArray<string>
  /** Whom to notify of problems. Alerts about the endpoint carry it. (Default: nobody) */
  readonly contact?: string
  /** What the endpoint is for: 1 to 500 characters on one line. (Default: none) */
  readonly description?: string
  /** Entries for your own programs, such as a customer's number: up to 20, with names of up to 64 bytes and values of up to 512. The history keeps them for good: store no credentials and nothing that must be erased. (Default: {}) */
  readonly metadata?: { readonly [name: string]: string }
  /** When alerts about the endpoint are raised. (Default: {}, the tenant's thresholds) */
  readonly alerts?: "off" | AlertThresholds
  /** Its signing secrets, newest first, without their values. */
  readonly secrets: ReadonlyArray<{
    /** The secret. */
    readonly value: string
    /** When it was made. */
    readonly createdAt: string
    /** Until when it is valid; absent for the present one. */
    readonly until?: string
  }>
  /** Since when and why it gets no events. */
  readonly disabled?: {
    /** Since when. */
    readonly at: string
    /** Why. */
    readonly reason: string
    /** Who did it. */
    readonly by: string
  }
  /** Since when and why it was given up; its deliveries wait. */
  readonly suspended?: {
    /** Since when. */
    readonly at: string
    /** Why. */
    readonly reason: string
    /** Who did it. */
    readonly by: string
  }
  /** Since when and why its deliveries are held back. */
  readonly paused?: {
    /** Since when. */
    readonly at: string
    /** Who did it. */
    readonly by: string
    /** Why. */
    readonly reason?: string
    /** The endpoint was made again and its URL is not known: it is not resumed before it has one. */
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
  /** The id of the event. */
  readonly id: string
  /** The name of the tenant. */
  readonly tenant: string
  /** The type of the event. */
  readonly type: string
  /** Its sequence in the stream of events. */
  readonly seq: number
  /** When the broker stored it. */
  readonly at: string
  /** Size of its body; absent if the event is no longer kept. */
  readonly bytes?: number
  /** The media type of the body. */
  readonly contentType?: string
  /** False while nothing is recorded of it: it is stored, and its endpoints are not known yet. */
  readonly routed: boolean
  /** What became of it at each endpoint: the last round. */
  readonly deliveries: ReadonlyArray<{
    /** `<event id>.<endpoint id>` */
    readonly delivery: string
    /** The id of the endpoint. */
    readonly endpoint: string
    /** Which round of the delivery: `0` is the first. */
    readonly round: string
    /** `skipped`: the endpoint wanted the event and was sent none, for the reason. */
    readonly state: "open" | "delivered" | "dead-lettered" | "discarded" | "skipped"
    /** Recorded requests. */
    readonly attempts: number
    /** Why it was skipped, or ended without success. */
    readonly reason?: string
  }>
}

export interface EventList {
  /** The events. */
  readonly events: ReadonlyArray<LoggedEvent>
  /** The `cursor` of the next page; absent at the end. */
  readonly next?: string
  /** The `cursor` of the page before, of what is newer; absent on the first. */
  readonly previous?: string
  /** The search for a page ends after 40 ms. The page then has what was found among everything newer than this (of a previous page: older), however little that is, and a cursor to continue with. */
  readonly searchedUntil: string | null
  /** How far the log is behind what happens. */
  readonly lag: {
    /** Facts that are stored and not yet seen. */
    readonly facts: number
    /** How long ago the newest fact that was seen was stored, if there are newer ones. If none is known it is 0, or how long ago that was looked at, where that is more than 5 s. */
    readonly ms: number
  }
}

/** What happened at an endpoint or with an event type; those with most dead letters first. */
export interface GroupTotals {
  /** The length of the period, or what is summed up. */
  readonly by: "endpoint" | "type"
  /** `TENANT/ENDPOINT`, or the type; null for all that are not listed. */
  readonly name: string | null
  /** In the remainder: how many endpoints or types it sums up. */
  readonly others?: number
  /** Events that were routed. */
  readonly events: number
  /** Deliveries that plans, redeliveries and replays began. */
  readonly begun: number
  /** Deliveries that ended with success. */
  readonly delivered: number
  /** Deliveries that plans left out, as the endpoint was disabled. */
  readonly skipped: number
  /** Of those delivered: recorded by a former owner. */
  readonly deliveredLate: number
  /** Attempts that were not the first of their round. */
  readonly retries: number
  /** Deliveries that ended as dead letters. */
  readonly deadLettered: number
  /** Dead letters that were discarded. */
  readonly discarded: number
  /** Recorded requests. */
  readonly attempts: number
  /** Of the deliveries that ended, from 0 to 1; null if none did. */
  readonly successRate: number | null
  /** Of the deliveries that ended, to two decimals; null if none did. */
  readonly meanAttempts: number | null
  /** Number of ended deliveries by the number of attempts that they took (`0`, `1`, `2`, `3-5`, `6-10`, `11-20`, `21+`), without empty groups. */
  readonly attemptCounts: { readonly [name: string]: number }
  /** From when the event was stored until it was delivered. Further rounds are left out. */
  readonly toSuccessMs: {
    /** The median, ms. */
    readonly p50: number
    /** 90% are not longer, ms. */
    readonly p90: number
    /** 99% are not longer, ms. */
    readonly p99: number
  } | null
  /** Of all attempts. */
  readonly latencyMs: {
    /** The median, ms. */
    readonly p50: number
    /** 90% are not longer, ms. */
    readonly p90: number
    /** 99% are not longer, ms. */
    readonly p99: number
  } | null
}

export interface GroupTotalsList {
  /** The totals. */
  readonly totals: ReadonlyArray<GroupTotals>
  /** Of totals that were read from the history: since when it has facts, where it has dropped some from after `since`. They are missing. */
  readonly keptSince?: string
  /** Of totals from the log of deliveries: the beginning of the oldest hour that it has. Where it is later than `since`, hours before are missing. */
  readonly oldestHour?: string | null
  /** Of totals from the log of deliveries: how far it is behind. The hours that `since` and `until` fall into count as a whole then. */
  readonly lag?: {
    /** Facts that are stored and not yet seen. */
    readonly facts: number
    /** How long ago the newest fact that was seen was stored, if there are newer ones. If none is known it is 0, or how long ago that was looked at, where that is more than 5 s. */
    readonly ms: number
  }
}

export interface Health {
  /** Whether it serves. */
  readonly status: "ok"
  /** Whether the broker answers. */
  readonly broker: "connected" | "away"
}

/** Long work. If its console stops, another one continues it. */
export interface Job {
  /** The id of the job. */
  readonly id: string
  /** Whose it is; `*`: of all tenants. */
  readonly tenant: string
  /** Its state. */
  readonly state: "waiting" | "running" | "done" | "failed" | "cancelled"
  /** Who asked for it. */
  readonly by: string
  /** When it was asked for. */
  readonly createdAt: string
  /** When it ended; absent while it has not. */
  readonly endedAt?: string
  /** How far it has come. */
  readonly progress?: {
    /** How many are done. */
    readonly done: number
    /** How many there are. */
    readonly total: number
  }
  /** Its result, once it is done. */
  readonly result?: { readonly [name: string]: unknown }
  /** Why it failed. */
  readonly problem?: string
  /** What it does. */
  readonly kind: "redelivery" | "replay" | "audit" | "retry" | "recovery"
  /** What was asked for: the fields of the request, with the times that it had by default. Of more than 20 `id`, the first ones, and in `ids` their number. */
  readonly asked: { readonly [name: string]: unknown }
  /** How many consoles have ended in the middle of it. A job that ended three fails. */
  readonly takeovers: number
}

export interface JobList {
  /** The jobs. */
  readonly jobs: ReadonlyArray<Job>
  /** The `cursor` of the next page; absent at the end. */
  readonly next?: string
}

export interface LinkOrSession {
  /** The id of the token. */
  readonly id: string
  /** The name of the tenant. */
  readonly tenant: "*" | string
  /** Its scopes. */
  readonly scopes: ReadonlyArray<"endpoints:read" | "endpoints:write" | "secrets:read" | "events:publish" | "deliveries:read" | "payloads:read" | "dead:read" | "dead:write" | "replay:write" | "tokens:write" | "operator">
  /** A name for people. */
  readonly name?: string
  /** Requests per second. (Default: 1,000) */
  readonly rate?: number
  /** When it expires. (Default: never) */
  readonly expiresAt?: string
  /** `link`: it opens one session in a browser, once, and does nothing else. `session`: it is a browser's, in a cookie. (Default: a program's) */
  readonly use?: "link" | "session"
  /** Until when a link opens a session. */
  readonly opensUntil?: string
  /** The one endpoint of its tenant that it is about: everything else is as if it was not there. */
  readonly endpoint?: string
  /** What the pages of a portal show. */
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
  /** The id of the token that it was made with, with which it is revoked. */
  readonly parent?: string
}

/** One attempt of a delivery. */
export interface LoggedAttempt {
  /** Its delivery's id, <event id>.<endpoint id>. */
  readonly delivery: string
  /** Which round of the delivery: `0` is the first. */
  readonly round: string
  /** The name of the tenant. */
  readonly tenant: string
  /** The id of the endpoint. */
  readonly endpoint: string
  /** The event's id. */
  readonly event: string
  /** The event's sequence in EVENTS. */
  readonly eventSeq: number
  /** When the event was stored. */
  readonly eventAt: string
  /** The type of the event. */
  readonly type: string | null
  /** Its number within its round, from 1. */
  readonly number: number
  /** When it was made. */
  readonly at: string
  /** Whether the delivery succeeded by it. */
  readonly outcome: "success" | "failure"
  /** It was sent while the endpoint's circuit was half-open. */
  readonly isProbe: boolean
  /** The status of the complete answer; null without one. */
  readonly status: number | null
  /** Why there was no complete answer; null if there was one. */
  readonly error: {
    /** The class of the error. */
    readonly class: string
    /** What the error says. */
    readonly message: string
  } | null
  /** How long it took, ms. */
  readonly durationMs: number | null
  /** When the next attempt is due. */
  readonly nextAttemptAt: string | null
  /** The id of the worker. */
  readonly worker: string | null
  /** The sequence of its fact in the history. */
  readonly seq: number
  /** How long it took to connect, ms, if a connection was made for it. */
  readonly connectMs?: number
  /** When the answer began, ms since the beginning of the attempt. */
  readonly firstByteMs?: number
  /** What the receiver answered, with the scope payloads:read. */
  readonly response?: {
    /** A selection of headers, by lower-case name. */
    readonly headers: { readonly [name: string]: string }
    /** The first 1 KiB, as text. */
    readonly body: string
    /** Bytes read; reading stops at 64 KiB. */
    readonly bytes: number
  }
  /** The redirects that it followed, with the scope payloads:read. */
  readonly redirects?: ReadonlyArray<{
    /** The status of the answer that redirected. */
    readonly status: number
    /** Where to, without the query, which often carries tokens. */
    readonly to: string
  }>
}

/** One round of a delivery. */
export interface LoggedDelivery {
  /** Its id, <event id>.<endpoint id>. */
  readonly delivery: string
  /** Which round of the delivery: `0` is the first. */
  readonly round: string
  /** The name of the tenant. */
  readonly tenant: string
  /** The id of the endpoint. */
  readonly endpoint: string
  /** The event's id. */
  readonly event: string
  /** The event's sequence in EVENTS. */
  readonly eventSeq: number
  /** When the event was stored. */
  readonly eventAt: string
  /** The type of the event. */
  readonly type: string | null
  /** `waiting` has not ended; `skipped` was left out by the plan, as the endpoint was disabled. */
  readonly state: "waiting" | "delivered" | "dead-lettered" | "discarded" | "skipped"
  /** The success was recorded by a worker that no longer owned the partition. */
  readonly late: boolean
  /** The highest number of an attempt. */
  readonly attempts: number
  /** How many of the recorded attempts were probes. */
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
  /** The round that sent its dead letter again. */
  readonly redeliveredAs: string | null
  /** The fact that ended it, or that began it if it waits: its sequence in HISTORY. */
  readonly seq: number
}

/** An event that was routed. */
export interface LoggedEvent {
  /** Its id, as receivers get it. */
  readonly id: string
  /** The name of the tenant. */
  readonly tenant: string
  /** Its sequence in the stream of events. */
  readonly seq: number
  /** When the broker stored it. */
  readonly at: string
  /** The type of the event. */
  readonly type: string | null
  /** How it came; null if that is no longer known. */
  readonly channel: string | null
  /** How many rounds of its deliveries are in each state. */
  readonly rounds: {
    /** Deliveries that wait. */
    readonly waiting: number
    /** Deliveries that ended with success. */
    readonly delivered: number
    /** Deliveries that ended as dead letters. */
    readonly deadLettered: number
    /** Dead letters that were discarded. */
    readonly discarded: number
    /** Endpoints that the plan left out. */
    readonly skipped: number
  }
}

/** The settings of an endpoint. What is left out is at its default. */
export interface NewEndpoint {
  /** Where requests go: http or https. */
  readonly url: string
  /** Types of the events that the endpoint gets, as NATS wildcards: `invoice.paid`, `invoice.*`, `>`. (Default: all) */
  readonly types?: ReadonlyArray<string> | undefined
  /** How requests are signed: Standard Webhooks, Stripe's or GitHub's way, or not at all. (Default: standard) */
  readonly sign?: "standard" | "standard-ed25519" | "stripe" | "github" | "none" | undefined
  /** Name of the signature header, if `sign` is stripe. (Default: petrel-signature) */
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
  /** Fewer concurrent requests while the receiver answers 429 or 503, times out or slows down. (Default: false) */
  readonly adapt?: boolean | undefined
  /** `slack`: bodies as incoming webhooks of chat tools take them. Only for an endpoint that gets nothing but alerts. (Default: the event's bytes) */
  readonly format?: "slack" | undefined
  /** Requests per second, and the burst after a pause: as numbers, or in words such as `20/s burst 40`. (Default: no limit) */
  readonly rate?: RateLimit | RateInWords | undefined
  /** After which failures the endpoint gets only probes, and when it is given up. (Default: {}, the defaults) */
  readonly circuit?: Circuit | undefined
  /** Time-out of an attempt, including redirects, such as "30 seconds". (Default: the policy's, else 30 seconds) */
  readonly timeout?: string | undefined
  /** Time limit of name look-up, TCP and TLS, such as "5 seconds". (Default: the policy's, else 10 seconds) */
  readonly connectTimeout?: string | undefined
  /** How many redirects are followed, 0 to 10. With 0, a 3xx is a permanent failure. (Default: 0) */
  readonly redirects?: number | undefined
  /** Other origins that redirects may lead to, such as https://eu.example.com. (Default: none) */
  readonly redirectsTo?: ReadonlyArray<string> | undefined
  /** Headers of every request to the endpoint, 20 at most. Their values are not shown again. */
  readonly headers?: { readonly [name: string]: string } | undefined
  /** Headers of the publisher that the endpoint gets, by name: true adds one, null removes one. (Default: none) */
  readonly forwardHeaders?: { readonly [name: string]: true | null } | undefined
  /** Whom to notify of problems. Alerts about the endpoint carry it. (Default: nobody) */
  readonly contact?: string | undefined
  /** What the endpoint is for: 1 to 500 characters on one line. (Default: none) */
  readonly description?: string | undefined
  /** Entries for your own programs, such as a customer's number: up to 20, with names of up to 64 bytes and values of up to 512. The history keeps them for good: store no credentials and nothing that must be erased. (Default: {}) */
  readonly metadata?: { readonly [name: string]: string } | undefined
  /** When alerts about the endpoint are raised. (Default: {}, the tenant's thresholds) */
  readonly alerts?: "off" | AlertThresholds | undefined
  /** The endpoint also gets its tenant's alerts, as events. (Default: false) */
  readonly operational?: boolean | undefined
  /** The signing secret. It replaces all former ones. (Default: a new one, which is shown) */
  readonly secret?: string | undefined
}

/** An event, with one of `data`, `text` and `base64`. */
export type NewEvent = {
  /** The event's type, such as invoice.paid. */
  readonly type: string
  /** The same id within 10 minutes (unless the installation has another time) is the same event. The tenant and a dot are put before it. (Default: a new one) */
  readonly id?: string | undefined
  /** The media type that receivers get with the body. (Default: application/json for `data`, text/plain for `text`, application/octet-stream for `base64`) */
  readonly contentType?: string | undefined
  /** Stored with the event. Receivers get traceparent and tracestate, and those that their endpoint or tenant names. */
  readonly headers?: { readonly [name: string]: string } | undefined
  /** Any JSON value. Receivers get it as it is written here, without white space. */
  readonly data: unknown
} | {
  /** The event's type, such as invoice.paid. */
  readonly type: string
  /** The same id within 10 minutes (unless the installation has another time) is the same event. The tenant and a dot are put before it. (Default: a new one) */
  readonly id?: string | undefined
  /** The media type that receivers get with the body. (Default: application/json for `data`, text/plain for `text`, application/octet-stream for `base64`) */
  readonly contentType?: string | undefined
  /** Stored with the event. Receivers get traceparent and tracestate, and those that their endpoint or tenant names. */
  readonly headers?: { readonly [name: string]: string } | undefined
  /** Receivers get it in UTF-8. */
  readonly text: string
} | {
  /** The event's type, such as invoice.paid. */
  readonly type: string
  /** The same id within 10 minutes (unless the installation has another time) is the same event. The tenant and a dot are put before it. (Default: a new one) */
  readonly id?: string | undefined
  /** The media type that receivers get with the body. (Default: application/json for `data`, text/plain for `text`, application/octet-stream for `base64`) */
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
  /** A name for people, such as who gets the link. */
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
  readonly provider: "petrel" | "standard-webhooks" | "stripe" | "github" | "gitlab" | "shopify" | "slack" | "twilio" | "sendgrid" | "paddle" | "paypal" | "square" | "discord" | "linear" | "hubspot" | "zoom" | "mailgun" | "meta" | "x" | "hmac"
  /** What the provider signs with, or its public keys. Needed, but for paypal. */
  readonly secrets?: ReadonlyArray<string> | undefined
  /** How far the signed time may be off; the default depends on the provider. */
  readonly tolerance?: string | undefined
  /** The URL that the provider was given, without its query, which it signs. Only for twilio, square, hubspot, hmac. */
  readonly publicUrl?: string | undefined
  /** What the provider calls the webhook, such as `repos/acme/shop/hooks/42` in GitHub's API. */
  readonly webhookId?: string | undefined
  /** What the provider repeats when the webhook is set up. Only for meta. */
  readonly verifyToken?: string | undefined
  /** How a sender of the provider `hmac` signs. */
  readonly scheme?: { readonly [name: string]: string } | undefined
  /** Requests that each gateway takes; others are refused for now, and the provider sends them again. */
  readonly rate?: RateLimit | RateInWords | undefined
  /** Credentials for the provider's API, which is asked for events that never came in. Only for petrel, standard-webhooks, stripe, github, gitlab, shopify, paddle, paypal, square, mailgun. */
  readonly apiKey?: string | undefined
  /** Where the provider's API is, if it is not the provider's own. */
  readonly apiUrl?: string | undefined
  /** How often gateways ask the provider's API for events that never came in, and fetch them. */
  readonly reconcile?: string | undefined
  /** Patterns of the provider's types that are compared, such as `invoice.*`. */
  readonly reconcileTypes?: ReadonlyArray<string> | undefined
  /** How many events may be missing before `provider-lost` is recorded in the history. */
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
  /** The outboxes. */
  readonly outboxes: ReadonlyArray<{
    /** The name of the outbox. */
    readonly name: string
    /** When it said so. */
    readonly at: string
    /** The process. */
    readonly relay: string
    /** Rows that wait to be published, counted up to 100,000. */
    readonly pending: number
    /** How long the oldest of them has waited, ms. */
    readonly oldestMs: number
    /** Rows that can never be published as they are, and that nobody has released or discarded. */
    readonly setAside: number
    /** When it last counted the rows, if it has no session of the database now; absent if it counts. */
    readonly countedAt?: string
    /** What keeps it from publishing, one sentence; absent if nothing does. */
    readonly problem?: string
    /** How long it has had its problem, ms. */
    readonly problemMs?: number
    /** Its relay has not reported for longer than 30 s: it does not run, or cannot reach the broker. */
    readonly isSilent: boolean
  }>
}

/** When the last attempt fails. */
export interface OutlinedEnd {
  /** How long after the beginning of the round at the earliest. */
  readonly earliest: string
  /** How long after the beginning of the round at the latest. */
  readonly latest: string
}

/** What a retry policy makes of a delivery that always fails. */
export interface OutlinedPolicy {
  /** The name of a preset, or `a policy of its own`. */
  readonly name: string
  /** The event types that it holds for; absent for all that have no other. */
  readonly types?: string
  readonly policy: RetryPolicy
  /** Each wait between its shortest and longest; `attempt` follows it. */
  readonly waits: ReadonlyArray<OutlinedWait>
  /** The most attempts. */
  readonly maxAttempts: number
  /** How long a round may last. */
  readonly window: string
  /** When the last attempt fails at the earliest and at the latest. */
  readonly givesUp: OutlinedEnd
  /** What ends the round: its attempts, its window, or either. */
  readonly endedBy: "attempts" | "either" | "window"
  /** Statuses with limits of their own. */
  readonly statuses: ReadonlyArray<OutlinedStatus>
}

/** A status with limits of its own. */
export interface OutlinedStatus {
  /** The status, or its class. */
  readonly status: string
  /** The most answers with it. */
  readonly attempts: number
  /** How long it is tried. */
  readonly window: string
  /** The nominal waits before each attempt. */
  readonly waits: ReadonlyArray<string>
}

/** A wait before an attempt. */
export interface OutlinedWait {
  /** The number of the attempt that follows. */
  readonly attempt: number
  /** The shortest wait before it. */
  readonly least: string
  /** The longest wait before it. */
  readonly most: string
  /** How long after the beginning of the round it comes at the earliest. */
  readonly earliest: string
  /** How long after the beginning of the round it comes at the latest. */
  readonly latest: string
  /** Whether the end of the window may prevent it. */
  readonly mayBeCut: boolean
}

/** A link that was made. */
export interface PortalLink {
  /** The id of the token. */
  readonly id: string
  /** The name of the tenant. */
  readonly tenant: "*" | string
  /** Its scopes. */
  readonly scopes: ReadonlyArray<"endpoints:read" | "endpoints:write" | "secrets:read" | "events:publish" | "deliveries:read" | "payloads:read" | "dead:read" | "dead:write" | "replay:write" | "tokens:write" | "operator">
  /** A name for people, such as who gets the link. */
  readonly name?: string
  /** Requests per second. (Default: 1,000) */
  readonly rate?: number
  /** When link and session end. */
  readonly expiresAt?: string
  /** `link`: it opens one session in a browser, once, and does nothing else. `session`: it is a browser's, in a cookie. (Default: a program's) */
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
  /** When it was made. */
  readonly createdAt: string
  /** Who made it. */
  readonly by: string
  /** The id of the token that it was made with, with which it is revoked. */
  readonly parent?: string
  /** What follows the console's address. It is shown only once. */
  readonly path: string
}

export interface PortalLinkList {
  /** The links. */
  readonly links: ReadonlyArray<LinkOrSession>
}

/** The state of the projection, which the log of deliveries is read from. */
export interface Projection {
  /** `stopped`: a problem keeps it from going on. */
  readonly state: "rebuilding" | "following" | "stopped"
  /** The sentence about what is wrong; null if nothing is. */
  readonly problem: string | null
  /** Up to which fact it has read: a sequence in HISTORY. */
  readonly position: number
  /** How far the log is behind the history. */
  readonly lag: {
    /** Facts that are stored and not yet seen. */
    readonly facts: number
    /** How long ago the newest fact that was seen was stored, if there are newer ones. If none is known it is 0, or how long ago that was looked at, where that is more than 5 s. */
    readonly ms: number
  }
  /** Rounds that have ended, and those that have not. */
  readonly rows: number
  /** Deliveries that wait. */
  readonly waiting: number
  /** Attempts that were recorded again, since the files were made or rebuilt. */
  readonly repeatedAttempts: number
  /** Size of its files, bytes. */
  readonly bytes: number
  /** The sums of hours. */
  readonly sums: {
    /** Rows that are kept. At `maxRows` the oldest hours are removed. */
    readonly rows: number
    /** The most rows that are kept. */
    readonly maxRows: number
    /** Times that an endpoint or type was summed up with others since the start: its tenant had too many. */
    readonly together: number
  }
  /** When the oldest round that is kept ended; null if none is. */
  readonly oldest: string | null
  /** Where the files are. */
  readonly data: string
}

export interface PublishedEvent {
  /** Its id, which receivers get. */
  readonly id: string
  /** The name of the tenant. */
  readonly tenant: string
  /** The type of the event. */
  readonly type: string
  /** Its sequence in the stream of events; absent where tenants have streams of their own. */
  readonly seq?: number
  /** True if the same event was there already: nothing new was stored. */
  readonly duplicate: boolean
  /** Headers that are stored with the event, and that receivers get only if they are named. */
  readonly unsent: ReadonlyArray<string>
}

/** Which requests of a tenant's quarantine are selected: by number, source, reason, or all. */
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
  /** What is in quarantine. */
  readonly quarantined: ReadonlyArray<Quarantined>
}

/** A request in quarantine: it came in and could not become an event. */
export interface Quarantined {
  /** Its number, in the order in which all of it came. */
  readonly number: number
  /** The name of the tenant. */
  readonly tenant: string
  /** The id of the source. */
  readonly source: string
  /** The name of the provider. */
  readonly provider: string
  /** `unreadable`: not of the shape that its provider documents; `id-collision`: an event with the same id and other bytes came before; `invalid`: it cannot be stored as an event. */
  readonly reason: "unreadable" | "id-collision" | "invalid"
  /** One sentence. */
  readonly problem: string
  /** When it came in. */
  readonly at: string
  /** Size in bytes. */
  readonly bytes: number
  /** The media type of the body. */
  readonly contentType: string
  /** The sender's id, if it could be read. */
  readonly event?: string
  /** The sender's type, if it could be read. */
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
  /** Dead letters that were selected. */
  readonly selected: number
  /** How many of them are sent, in total and by reason. */
  readonly redeliver: number
  /** How many, by reason. */
  readonly reasons: { readonly [name: string]: number }
  /** How many of them a receiver may have got already. */
  readonly mayRepeat?: number
  /** Of those that are sent, deliveries that wait because their endpoint is paused or suspended; at most 100 endpoints. */
  readonly waiting?: ReadonlyArray<{
    /** `<tenant>/<endpoint>` */
    readonly endpoint: string
    /** How many they are. */
    readonly count: number
  }>
  /** Ids that no longer exist: discarded, or too old and not kept. */
  readonly gone: number
  /** Sent again before. */
  readonly before: number
  /** Delivered late, so that the receiver has them. */
  readonly deliveredLate: number
  /** Left out because a newer dead letter of the same delivery is selected, too: each delivery is sent once. */
  readonly superseded: number
  /** Dead letters that are not sent, by endpoint; at most 100 of them. */
  readonly skipped: ReadonlyArray<{
    /** `<tenant>/<endpoint>` */
    readonly endpoint: string
    /** Why they are not sent. */
    readonly why: "endpoint-removed" | "endpoint-disabled" | "endpoint-unreadable"
    /** How many they are. */
    readonly count: number
  }>
  /** Dead letters of further such endpoints. */
  readonly skippedElsewhere: number
  /** Waiting deliveries that are tried now. */
  readonly retried: {
    /** Endpoints that were looked at: those for which something waits. */
    readonly endpoints: number
    /** Deliveries that are due now. */
    readonly moved: number
    /** Deliveries that were under way. */
    readonly inFlight: number
    /** Deliveries that wait in the backlog. */
    readonly inBacklog: number
    /** Deliveries that wait as before. */
    readonly left: number
    /** Endpoints that take nothing now, and why; at most 100 of them. */
    readonly skipped: ReadonlyArray<{
      /** The id of the endpoint. */
      readonly endpoint: string
      /** Why it takes nothing. */
      readonly why: string
    }>
    /** How many further ones take nothing. */
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
  /** Dead letters that were selected. */
  readonly selected: number
  /** How many of them are sent, in total and by reason. */
  readonly redeliver: number
  /** How many, by reason. */
  readonly reasons: { readonly [name: string]: number }
  /** How many of them a receiver may have got already. */
  readonly mayRepeat?: number
  /** Of those that are sent, deliveries that wait because their endpoint is paused or suspended; at most 100 endpoints. */
  readonly waiting?: ReadonlyArray<{
    /** `<tenant>/<endpoint>` */
    readonly endpoint: string
    /** How many they are. */
    readonly count: number
  }>
  /** Ids that no longer exist: discarded, or too old and not kept. */
  readonly gone: number
  /** Sent again before. */
  readonly before: number
  /** Delivered late, so that the receiver has them. */
  readonly deliveredLate: number
  /** Left out because a newer dead letter of the same delivery is selected, too: each delivery is sent once. */
  readonly superseded: number
  /** Dead letters that are not sent, by endpoint; at most 100 of them. */
  readonly skipped: ReadonlyArray<{
    /** `<tenant>/<endpoint>` */
    readonly endpoint: string
    /** Why they are not sent. */
    readonly why: "endpoint-removed" | "endpoint-disabled" | "endpoint-unreadable"
    /** How many they are. */
    readonly count: number
  }>
  /** Dead letters of further such endpoints. */
  readonly skippedElsewhere: number
}

export interface Release {
  /** Of the event, without its source. (Default: what its provider says) */
  readonly type?: string | undefined
}

/** Which requests of a tenant's quarantine become events, and of which type. */
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
  /** Its number in the quarantine. */
  readonly number: number
  /** The name of the tenant. */
  readonly tenant: string
  /** The id of the source. */
  readonly source: string
  /** The events that it became: their ids at the source, and their types without it. */
  readonly events: ReadonlyArray<{
    /** The id of the event. */
    readonly id: string
    /** The type of the event. */
    readonly type: string
  }>
}

export interface ReleasedSeveral {
  /** What was released. */
  readonly released: ReadonlyArray<{
    /** Its number in the quarantine. */
    readonly number: number
    /** The name of the tenant. */
    readonly tenant: string
    /** The id of the source. */
    readonly source: string
    /** The events that it became: their ids at the source, and their types without it. */
    readonly events: ReadonlyArray<{
      /** The id of the event. */
      readonly id: string
      /** The type of the event. */
      readonly type: string
    }>
  }>
  /** What stays in the quarantine, and why. */
  readonly left: ReadonlyArray<{
    /** Its number in the quarantine. */
    readonly number: number
    /** What is wrong, in a sentence. */
    readonly problem: string
  }>
}

export interface RemovedEndpoint {
  /** The name of the tenant. */
  readonly tenant: string
  /** The id of the endpoint. */
  readonly id: string
  /** It is gone. */
  readonly removed: true
}

export interface RemovedSource {
  /** The name of the tenant. */
  readonly tenant: string
  /** The id of the source. */
  readonly id: string
  /** The name of the provider. */
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
  /** Only events that were skipped because it was disabled. */
  readonly skipped?: boolean | undefined
  /** Leave out events that it has taken or that are on their way there. */
  readonly onlyMissing?: boolean | undefined
  /** A name: the same name continues it. (Default: made from the other fields) */
  readonly id?: string | undefined
  /** NATS wildcards, of which one must match. (Default: what the endpoint wants) */
  readonly types?: ReadonlyArray<string> | undefined
  /** Say what would be done, and do nothing. (Default: false) */
  readonly dryRun?: boolean | undefined
}

export interface ReplayPlan {
  /** The id of the replay. */
  readonly id: string
  /** The time that is replayed. */
  readonly since: string
  /** Up to when. */
  readonly until: string
  /** Left out: sent by this replay before. */
  readonly before: number
  /** Left out: the endpoint has taken them. */
  readonly delivered: number
  /** Left out: on their way there already. */
  readonly underWay: number
  /** Left out: workers have yet to route them. */
  readonly unrouted: number
  /** Deliveries that it begins. */
  readonly replay: number
  /** Events by type, highest first; at most 1,000 types. */
  readonly types: { readonly [name: string]: number }
  /** Events of further types. */
  readonly otherTypes: number
}

/** A delivery that is sent once more, in a round of its own. */
export interface ResentDelivery {
  /** The id of the delivery. */
  readonly delivery: string
  /** The name of the tenant. */
  readonly tenant: string
  /** The id of the endpoint. */
  readonly endpoint: string
  /** The replay, whose round the delivery has. */
  readonly replay: string
}

export interface RetriedDelivery {
  /** `<event id>.<endpoint id>` */
  readonly delivery: string
  /** The name of the tenant. */
  readonly tenant: string
  /** The id of the endpoint. */
  readonly endpoint: string
  /** `moved`: it waited for its next attempt, and is tried now. `in-flight`: it is being attempted, or about to be. `backlog`: it waits for its endpoint. `left`: its endpoint's backlog is full. */
  readonly state: "moved" | "in-flight" | "backlog" | "left"
  /** What sets its pace from here on. */
  readonly pace: ReadonlyArray<string>
}

export interface RetriedEndpoint {
  /** The name of the tenant. */
  readonly tenant: string
  /** The id of the endpoint. */
  readonly id: string
  /** Deliveries that are due now. */
  readonly moved: number
  /** Deliveries that were under way. */
  readonly inFlight: number
  /** Deliveries that wait in the backlog. */
  readonly inBacklog: number
  /** Deliveries that wait as before. */
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
  /** Wait for their next attempt, and would be tried now. */
  readonly moved: number
  /** Are being attempted, or about to be. */
  readonly inFlight: number
  /** Are in their endpoint's backlog, whatever they are, and are sent when the endpoint takes them. */
  readonly inBacklog: number
  /** Would stay as they are. */
  readonly left: number
  /** Endpoints that take nothing now, and why; at most 100 of them. */
  readonly skipped: ReadonlyArray<{
    /** The id of the endpoint. */
    readonly endpoint: string
    /** Why it takes nothing. */
    readonly why: string
  }>
  /** How many further ones take nothing. */
  readonly skippedElsewhere: number
}

export interface RetryPolicies {
  /** The policies. */
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
  /** What may not be intended, as the rest of a sentence about the endpoint. */
  readonly caution?: string
  /** Between attempts, without jitter. */
  readonly waits: ReadonlyArray<string>
  /** Sum of all waits, without jitter. */
  readonly total: string
  readonly outline: OutlinedPolicy
}

export interface RetryPresetList {
  /** The presets. */
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
  /** `link`: it opens one session in a browser, once, and does nothing else. `session`: it is a browser's, in a cookie. (Default: a program's) */
  readonly use?: "link" | "session"
  /** Until when a link opens a session. */
  readonly opensUntil?: string
  /** The one endpoint of its tenant that it is about: everything else is as if it was not there. */
  readonly endpoint?: string
  /** What the pages of a portal show. */
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
  /** The version of the record. */
  readonly v: 1
  /** Its tenant. */
  readonly tenant: string
  /** Its id within the tenant. */
  readonly id: string
  /** Created each time that an endpoint of this name is added. */
  readonly generation: string
  /** Where requests go: http or https. */
  readonly url: string
  /** Types of the events that the endpoint gets, as NATS wildcards: `invoice.paid`, `invoice.*`, `>`. (Default: all) */
  readonly types: ReadonlyArray<string>
  /** How requests are signed: Standard Webhooks, Stripe's or GitHub's way, or not at all. (Default: standard) */
  readonly sign: "standard" | "standard-ed25519" | "stripe" | "github" | "none"
  /** Name of the signature header, if `sign` is stripe. (Default: petrel-signature) */
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
  /** Fewer concurrent requests while the receiver answers 429 or 503, times out or slows down. (Default: false) */
  readonly adapt?: boolean
  /** `slack`: bodies as incoming webhooks of chat tools take them. Only for an endpoint that gets nothing but alerts. (Default: the event's bytes) */
  readonly format?: "slack"
  /** Requests per second, and the burst after a pause: as numbers, or in words such as `20/s burst 40`. (Default: no limit) */
  readonly rate?: RateLimit
  /** After which failures the endpoint gets only probes, and when it is given up. (Default: {}, the defaults) */
  readonly circuit: {
    readonly state?: "closed" | "open" | "half-open"
    readonly since?: string
    /** When the next probe may be sent. Absent for a closed circuit. */
    readonly nextProbeAt?: string
    /** Successful probes of a half-open circuit. */
    readonly probesSucceeded?: number
    /** The delivery of the latest probe. */
    readonly lastProbe?: string
    /** Why it opened. */
    readonly why?: string
    /** The circuit has closed, and deliveries come back gradually. */
    readonly ramping?: true
    readonly failures: number
    readonly rate: "none" | {
      /** How many of the attempts have to fail, percent. */
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
  /** How many redirects are followed, 0 to 10. With 0, a 3xx is a permanent failure. (Default: 0) */
  readonly redirects: number
  /** Other origins that redirects may lead to, such as https://eu.example.com. (Default: none) */
  readonly redirectsTo?: ReadonlyArray<string>
  /** Headers that it gets with every request, without their values. */
  readonly headers: { readonly [name: string]: string }
  /** Headers of the publisher that the endpoint gets, by name: true adds one, null removes one. (Default: none) */
  readonly forwardHeaders?: ReadonlyArray<string>
  /** Whom to notify of problems. Alerts about the endpoint carry it. (Default: nobody) */
  readonly contact?: string
  /** What the endpoint is for: 1 to 500 characters on one line. (Default: none) */
  readonly description?: string
  /** Entries for your own programs, such as a customer's number: up to 20, with names of up to 64 bytes and values of up to 512. The history keeps them for good: store no credentials and nothing that must be erased. (Default: {}) */
  readonly metadata?: { readonly [name: string]: string }
  /** When alerts about the endpoint are raised. (Default: {}, the tenant's thresholds) */
  readonly alerts?: "off" | AlertThresholds
  /** Its signing secrets, newest first, without their values. */
  readonly secrets: ReadonlyArray<{
    /** The secret. */
    readonly value: string
    /** When it was made. */
    readonly createdAt: string
    /** Until when it is valid; absent for the present one. */
    readonly until?: string
  }>
  /** Since when and why it gets no events. */
  readonly disabled?: {
    /** Since when. */
    readonly at: string
    /** Why. */
    readonly reason: string
    /** Who did it. */
    readonly by: string
  }
  /** Since when and why it was given up; its deliveries wait. */
  readonly suspended?: {
    /** Since when. */
    readonly at: string
    /** Why. */
    readonly reason: string
    /** Who did it. */
    readonly by: string
  }
  /** Since when and why its deliveries are held back. */
  readonly paused?: {
    /** Since when. */
    readonly at: string
    /** Who did it. */
    readonly by: string
    /** Why. */
    readonly reason?: string
    /** The endpoint was made again and its URL is not known: it is not resumed before it has one. */
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
  /** The version of the record. */
  readonly v: 1
  /** The name of the tenant. */
  readonly tenant: string
  /** Its name within the tenant: the first token of its events' types. */
  readonly id: string
  /** Who sends: stripe, github, standard and others. */
  readonly provider: string
  /** With which requests are verified, newest first. */
  readonly secrets: ReadonlyArray<{
    /** The secret. */
    readonly value: string
    /** When it was made. */
    readonly createdAt: string
    /** Until when it is valid; absent for the present one. */
    readonly until?: string
  }>
  /** How far the signed time may be off; the default depends on the provider. */
  readonly tolerance?: string
  /** The URL that the provider was given, without its query, which it signs. Only for twilio, square, hubspot, hmac. */
  readonly publicUrl?: string
  /** What the provider calls the webhook, such as `repos/acme/shop/hooks/42` in GitHub's API. */
  readonly webhookId?: string
  /** What the provider repeats when the webhook is set up. Only for meta. */
  readonly verifyToken?: string
  /** How a sender of the provider `hmac` signs. */
  readonly scheme?: { readonly [name: string]: string }
  /** Requests that each gateway takes; others are refused for now, and the provider sends them again. */
  readonly rate?: RateLimit
  /** Credentials for the provider's API, which is asked for events that never came in. Only for petrel, standard-webhooks, stripe, github, gitlab, shopify, paddle, paypal, square, mailgun. */
  readonly apiKey?: string
  /** Where the provider's API is, if it is not the provider's own. */
  readonly apiUrl?: string
  /** How often gateways ask the provider's API for events that never came in, and fetch them. */
  readonly reconcile?: string
  /** Patterns of the provider's types that are compared, such as `invoice.*`. */
  readonly reconcileTypes?: ReadonlyArray<string>
  /** How many events may be missing before `provider-lost` is recorded in the history. */
  readonly alertAbove?: number
  /** When it was made. */
  readonly createdAt: string
  /** When it was changed last. */
  readonly updatedAt: string
  /** Where the provider posts, on a gateway (`petrel ingest`). */
  readonly path: string
  /** The revision of its configuration. */
  readonly revision: number
  /** What its last reconciliation found, if a single source is shown. */
  readonly reconciled?: {
    /** What was asked for. */
    readonly since: string
    /** Up to when it compared. */
    readonly until: string
    /** Events that the provider listed. */
    readonly listed: number
    /** Those of them that came in, or had been fetched before. */
    readonly present: number
    /** Those that had not come in. */
    readonly missing: number
    /** Missing ones that were fetched and are events now. */
    readonly fetched: number
    /** Missing ones that the provider was asked to send again. */
    readonly asked: number
    /** Not known, because neither INTAKE nor EVENTS goes back so far. They are not fetched. */
    readonly tooOld: number
    /** The first missing ones, by their ids at the provider. */
    readonly missingIds: ReadonlyArray<string>
    /** Why the first of the events that were neither fetched nor asked for could not be fetched. */
    readonly problem?: string
    /** When it ended. */
    readonly at: string
    /** Why it was interrupted; absent if it was not. */
    readonly failed?: string
  }
  /** The gateways that refuse every request of it now, and why, if a single source is shown; absent if none does. */
  readonly refusing?: ReadonlyArray<{
    /** The gateway's host. */
    readonly host: string
    /** One sentence. */
    readonly reason: string
    /** When the first was refused. */
    readonly since: string
  }>
}

export interface SourceList {
  /** The sources. */
  readonly sources: ReadonlyArray<Source>
}

/** A change of a source: what is left out stays as it is, null removes a setting. */
export interface SourcePatch {
  /** How far the signed time may be off; the default depends on the provider. */
  readonly tolerance?: string | null | undefined
  /** The URL that the provider was given, without its query, which it signs. Only for twilio, square, hubspot, hmac. */
  readonly publicUrl?: string | null | undefined
  /** What the provider calls the webhook, such as `repos/acme/shop/hooks/42` in GitHub's API. */
  readonly webhookId?: string | null | undefined
  /** What the provider repeats when the webhook is set up. Only for meta. */
  readonly verifyToken?: string | null | undefined
  /** How a sender of the provider `hmac` signs. */
  readonly scheme?: { readonly [name: string]: string } | null | undefined
  /** Requests that each gateway takes; others are refused for now, and the provider sends them again. */
  readonly rate?: RateLimit | RateInWords | null | undefined
  /** Credentials for the provider's API, which is asked for events that never came in. Only for petrel, standard-webhooks, stripe, github, gitlab, shopify, paddle, paypal, square, mailgun. */
  readonly apiKey?: string | null | undefined
  /** Where the provider's API is, if it is not the provider's own. */
  readonly apiUrl?: string | null | undefined
  /** How often gateways ask the provider's API for events that never came in, and fetch them. */
  readonly reconcile?: string | null | undefined
  /** Patterns of the provider's types that are compared, such as `invoice.*`. */
  readonly reconcileTypes?: ReadonlyArray<string> | null | undefined
  /** How many events may be missing before `provider-lost` is recorded in the history. */
  readonly alertAbove?: number | null | undefined
}

/** A new secret, and how long the old ones stay valid (24 hours by default). */
export interface SourceRotation {
  /** What the provider signs with from now on. */
  readonly secret: string
  /** How long the old ones verify, too; `0 seconds` drops them at once. */
  readonly keepOld?: string | undefined
}

/** What attempts came to, by hour or day. Quantiles are within 5% of the exact ones, or within 0.1 ms. */
export interface Stats {
  /** The name of the tenant. */
  readonly tenant: string
  /** The id of the endpoint. */
  readonly endpoint?: string
  /** The length of the periods. */
  readonly by: "hour" | "day"
  /** The beginning of the first hour that is counted: later than asked for where the log does not reach back so far. */
  readonly since: string
  /** Up to when. */
  readonly until: string
  /** All periods together. */
  readonly whole: {
    /** Recorded requests. */
    readonly attempts: number
    /** Those that succeeded. */
    readonly succeeded: number
    /** Those that failed. */
    readonly failed: number
    /** Of the attempts, from 0 to 1; null without any. */
    readonly successRate: number | null
    /** Attempts by the class of their answer: `2xx`, …, `none` without one. */
    readonly answers: { readonly [name: string]: number }
    /** How long they took, ms; null without any. */
    readonly latencyMs: {
      /** The median, ms. */
      readonly p50: number
      /** 95% are not longer, ms. */
      readonly p95: number
      /** 99% are not longer, ms. */
      readonly p99: number
    } | null
  }
  /** Oldest first, those without attempts too. */
  readonly periods: ReadonlyArray<{
    /** When the period begins. */
    readonly begins: string
    /** Recorded requests. */
    readonly attempts: number
    /** Those that succeeded. */
    readonly succeeded: number
    /** Those that failed. */
    readonly failed: number
    /** Of the attempts, from 0 to 1; null without any. */
    readonly successRate: number | null
    /** Attempts by the class of their answer: `2xx`, …, `none` without one. */
    readonly answers: { readonly [name: string]: number }
    /** How long they took, ms; null without any. */
    readonly latencyMs: {
      /** The median, ms. */
      readonly p50: number
      /** 95% are not longer, ms. */
      readonly p95: number
      /** 99% are not longer, ms. */
      readonly p99: number
    } | null
  }>
  /** How far the log is behind what happens. */
  readonly lag: {
    /** Facts that are stored and not yet seen. */
    readonly facts: number
    /** How long ago the newest fact that was seen was stored, if there are newer ones. If none is known it is 0, or how long ago that was looked at, where that is more than 5 s. */
    readonly ms: number
  }
}

/** The state of the installation. */
export interface Status {
  /** When the state was read. */
  readonly at: string
  /** The NATS servers. */
  readonly broker: {
    /** The broker's version. */
    readonly version: string
    /** The cluster's name; null for a single server. */
    readonly cluster: string | null
    /** Copies of each stream. */
    readonly replicas: number
    /** Of all streams. Replicas are not counted. */
    readonly storedBytes: number
    /** What the broker's account stores, bytes. */
    readonly accountBytes: number | null
    /** What the account may store, bytes. */
    readonly accountLimitBytes: number | null
    /** What its servers say at `/healthz`; empty where their monitoring ports are not known. */
    readonly health: ReadonlyArray<{
      /** The address or name of the server. */
      readonly server: string
      /** Null if it does not answer. */
      readonly ok: boolean | null
      /** What it says. */
      readonly says: string
    }>
    /** Streams without a leader, or with copies that are not up to date. */
    readonly streamsInTrouble: ReadonlyArray<{
      /** The name of the stream. */
      readonly name: string
      /** `leaderless`, `missing` or `led`. */
      readonly state: string
      /** The copies that are not up to date. */
      readonly copiesBehind: ReadonlyArray<{
        /** The name of the server. */
        readonly server: string
        /** Whether it is away. */
        readonly offline: boolean
        /** How many messages it is behind. */
        readonly lag: number
      }>
    }>
  }
  /** How much is stored, and how much there may be. */
  readonly room: {
    /** The events, and how far their routing is. */
    readonly events: {
      /** Size in bytes; null if it is not known. */
      readonly bytes: number | null
      /** The most that there may be, bytes; null without a limit. */
      readonly limitBytes: number | null
      /** When the oldest message was stored; null without any. */
      readonly oldestAt: string | null
    }
    /** The history. */
    readonly history: {
      /** Size in bytes; null if it is not known. */
      readonly bytes: number | null
      /** The most that there may be, bytes; null without a limit. */
      readonly limitBytes: number | null
      /** When the oldest message was stored; null without any. */
      readonly oldestAt: string | null
    }
    /** The dead letters. */
    readonly deadLetters: {
      /** Size in bytes; null if it is not known. */
      readonly bytes: number | null
      /** The most that there may be, bytes; null without a limit. */
      readonly limitBytes: number | null
    }
    /** The queues. */
    readonly queues: {
      /** Size in bytes; null if it is not known. */
      readonly bytes: number | null
      /** The most that there may be, bytes; null without a limit. */
      readonly limitBytes: number | null
    }
    /** The backlogs. */
    readonly backlogs: {
      /** Size in bytes; null if it is not known. */
      readonly bytes: number | null
      /** The most that there may be, bytes; null without a limit. */
      readonly limitBytes: number | null
    }
    /** The broker's account. */
    readonly account: {
      /** Size in bytes; null if it is not known. */
      readonly bytes: number | null
      /** The most that there may be, bytes; null without a limit. */
      readonly limitBytes: number | null
    }
  }
  /** The events, and how far their routing is. */
  readonly events: {
    /** How many are stored. */
    readonly stored: number | null
    /** Events that no router has taken yet. */
    readonly waitingForRouter: number | null
    /** Events that a router is working on. */
    readonly inRouter: number | null
    /** When the oldest event was stored that is not routed; null also if all are. */
    readonly oldestUnroutedAt: string | null
    /** Events that left the stream before they were routed. */
    readonly lost: number
  }
  /** Deliveries that wait, by place. */
  readonly deliveries: {
    /** All that wait. */
    readonly waiting: number
    /** Not delivered by the broker yet. */
    readonly new: number | null
    /** Delivered by the broker and not acknowledged. */
    readonly ackPending: number | null
    /** Requests that are under way. */
    readonly inFlight: number | null
    /** Deliveries that wait in the memory of their owner. */
    readonly inLine: number | null
    /** Those of `ackPending` that wait for a retry. */
    readonly retries: number | null
    /** Retries that wait as schedules of the broker. */
    readonly scheduled: number | null
    /** Deliveries that wait in backlogs. */
    readonly backlog: number | null
    /** Messages that no owner can read. */
    readonly unreadable: number | null
    /** Partitions whose owner answers. */
    readonly partitionsAnswering: number
  }
  /** The delivery that has waited longest. */
  readonly oldestWaiting: {
    /** The name of the tenant. */
    readonly tenant: string
    /** The id of the endpoint. */
    readonly endpoint: string
    /** Where the delivery waits. */
    readonly place: "queue" | "schedule" | "backlog"
    /** When its round began. */
    readonly since: string
  } | null
  /** The change of the number of partitions that is under way. */
  readonly repartition: {
    /** The former number of partitions. */
    readonly from: number
    /** The new number of partitions. */
    readonly to: number
  } | null
  /** The partitions. */
  readonly partitions: ReadonlyArray<{
    /** The index of the partition. */
    readonly partition: number
    /** The worker that owns it. */
    readonly owner: string | null
    /** Present if nobody owns it. */
    readonly unownedSince?: string | null
    /** Whether its owner answers. */
    readonly answers: boolean
    /** Not delivered by the broker yet. */
    readonly new: number | null
    /** Delivered by the broker and not acknowledged. */
    readonly ackPending: number | null
    /** Requests that are under way. */
    readonly inFlight: number | null
    /** Deliveries that wait in the memory of their owner. */
    readonly inLine: number | null
    /** Those of `ackPending` that wait for a retry. */
    readonly retries: number | null
    /** Retries that wait as schedules of the broker. */
    readonly scheduled: number | null
    /** Deliveries that wait in backlogs. */
    readonly backlog: number | null
    /** Messages that no owner can read. */
    readonly unreadable: number | null
    /** Endpoints that have a backlog. */
    readonly endpointsWithBacklog: number | null
  }>
  /** Endpoints by state. */
  readonly endpoints: {
    /** All endpoints. */
    readonly total: number
    /** Endpoints whose circuit is closed. */
    readonly closed: number
    /** Endpoints whose circuit is open. */
    readonly open: number
    /** Endpoints whose circuit is half-open. */
    readonly halfOpen: number
    /** Endpoints that are paused. */
    readonly paused: number
    /** Endpoints that are suspended. */
    readonly suspended: number
    /** Endpoints that are disabled. */
    readonly disabled: number
    /** How many cannot be read. */
    readonly unreadable: number
    /** Endpoints that have a backlog; null if not all backlogs could be counted. */
    readonly withBacklog: number | null
  } | null
  /** The workers. */
  readonly workers: ReadonlyArray<{
    /** The id of the worker. */
    readonly worker: string
    /** Whether its last heartbeat is recent. */
    readonly alive: boolean
    /** The host that it runs on. */
    readonly host?: string
    /** When it was started. */
    readonly startedAt?: string
    /** What it does. */
    readonly roles?: ReadonlyArray<"router" | "deliver">
    /** It is stopping. */
    readonly leaving?: boolean
    /** The partitions. */
    readonly partitions: ReadonlyArray<number>
  }> | null
  /** Attempts within the last hour, in the partitions whose owners answer. `since` is the start of the shortest count: that partition had another owner before. */
  readonly lastHour: {
    /** Start of the count: later than an hour ago if the partition changed owner. */
    readonly since: string
    /** How many were made. */
    readonly attempts: number
    /** How many of them succeeded. */
    readonly delivered: number
    /** From 0 to 1; null without attempts. */
    readonly successRate: number | null
    /** Duration of an attempt, ms. */
    readonly p50Ms: number | null
    /** 95% are not longer, ms. */
    readonly p95Ms: number | null
  } | null
  /** The dead letters. */
  readonly deadLetters: {
    /** How many are stored. */
    readonly stored: number | null
    /** Neither sent again nor delivered late; also null where that takes too long to count. */
    readonly open: number | null
    /** Dead letters of the last hour. */
    readonly lastHour: number | null
    /** Size in bytes. */
    readonly bytes: number | null
    /** The most that there may be, bytes. */
    readonly limitBytes: number | null
    /** Dead letters by tenant. */
    readonly byTenant: { readonly [name: string]: number } | null
  }
  /** What comes in from outside. Null also where the installation has no intake. */
  readonly incoming: {
    /** Events that are recognised when they come again. */
    readonly events: number
    /** Messages that have not become events yet. */
    readonly notCopied: number | null
    /** Size in bytes; null if it is not known. */
    readonly bytes: number | null
    /** The most that there may be, bytes; null without a limit. */
    readonly limitBytes: number | null
    /** When the oldest that is recognised came in. */
    readonly oldestAt: string | null
    /** Requests in quarantine, of all tenants. */
    readonly quarantined: number
    /** Requests in quarantine, by tenant. */
    readonly quarantinedByTenant: { readonly [name: string]: number }
    /** The gateways that run, as they last reported. */
    readonly gateways: ReadonlyArray<{
      /** The process. */
      readonly gateway: string
      /** The host that it runs on. */
      readonly host: string
      /** When it was started. */
      readonly startedAt: string
      /** When it said so. */
      readonly at: string
      /** Requests under way. */
      readonly underWay: number
      /** Sources that refuse every request. */
      readonly refusing: ReadonlyArray<{
        /** The name of the tenant. */
        readonly tenant: string
        /** The id of the source. */
        readonly source: string
        /** One sentence. */
        readonly reason: string
        /** When the first was refused. */
        readonly since: string
      }>
      /** Why the broker did not store what it tried last, one sentence; absent if it did. */
      readonly problem?: string
      /** True if the broker does not show it the sources: it knows them as they were before. (Default: false) */
      readonly isOutdated?: boolean
    }>
    /** The outboxes of databases, as their relays last reported. */
    readonly outboxes: ReadonlyArray<{
      /** The name of the outbox. */
      readonly name: string
      /** When it said so. */
      readonly at: string
      /** The process. */
      readonly relay: string
      /** Rows that wait to be published, counted up to 100,000. */
      readonly pending: number
      /** How long the oldest of them has waited, ms. */
      readonly oldestMs: number
      /** Rows that can never be published as they are, and that nobody has released or discarded. */
      readonly setAside: number
      /** When it last counted the rows, if it has no session of the database now; absent if it counts. */
      readonly countedAt?: string
      /** What keeps it from publishing, one sentence; absent if nothing does. */
      readonly problem?: string
      /** How long it has had its problem, ms. */
      readonly problemMs?: number
      /** Its relay has not reported for longer than 30 s: it does not run, or cannot reach the broker. */
      readonly isSilent: boolean
    }>
  } | null
  /** Work has stopped or is about to stop until an operator acts. */
  readonly problems: ReadonlyArray<{
    /** A stable code for programs. */
    readonly code: string
    /** What is so, and what to do about it. */
    readonly text: string
  }>
  /** Notable states, and states that pass without action. */
  readonly notices: ReadonlyArray<{
    /** A stable code for programs. */
    readonly code: string
    /** What is so, and what to do about it. */
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
    /** A warning if fewer deliveries than this succeed, percent. */
    readonly successWarnPercent?: "off" | number | undefined
    /** A critical alert if fewer deliveries than this succeed, percent. */
    readonly successCriticalPercent?: "off" | number | undefined
    /** A warning if the first attempt of more deliveries than this must be retried, percent. */
    readonly retriesPercent?: "off" | number | undefined
    /** A warning if more final answers than this are permanent failures, percent. */
    readonly permanentPercent?: "off" | number | undefined
    /** A warning if successful deliveries take more attempts than this on average. */
    readonly attemptsPerDelivery?: "off" | number | undefined
    /** A warning if half of the deliveries take longer than this from the event to success. */
    readonly medianTime?: "off" | string | undefined
    /** A warning if 1 of 100 deliveries takes longer than this from the event to success. */
    readonly p99Time?: "off" | string | undefined
    /** A warning at this many dead letters of one endpoint within the window. */
    readonly deadLetters?: "off" | number | undefined
    /** A warning at this many dead letters of all endpoints of a tenant within the window. */
    readonly tenantDeadLetters?: "off" | number | undefined
    /** A warning at this many sources of a tenant that refuse every request. */
    readonly sourcesRefusing?: "off" | number | undefined
    /** A warning at this many requests of a tenant in quarantine. */
    readonly quarantined?: "off" | number | undefined
    /** A warning at this many events of a tenant's sources that had not come in when these were last reconciled. */
    readonly providerLost?: "off" | number | undefined
    /** A warning at this many failed attempts in a row while the circuit is closed. */
    readonly failuresInRow?: "off" | number | undefined
    /** Whether an open circuit is an alert. */
    readonly circuitOpened?: "on" | "off" | undefined
    /** Whether a disabled endpoint is an alert. */
    readonly endpointDisabled?: "on" | "off" | undefined
    /** Whether a suspended endpoint is an alert. */
    readonly endpointSuspended?: "on" | "off" | undefined
    /** Whether it is an alert if an endpoint answers with one status as many times in a row as `alert` of its retry policy says for that status. */
    readonly statusInARow?: "on" | "off" | undefined
    /** The time over which all values are counted. */
    readonly window?: string | undefined
    /** With fewer deliveries than this, shares and times are not judged. */
    readonly samples?: number | undefined
    /** A critical alert if an event waits longer than this to be routed. */
    readonly unroutedTime?: "off" | string | undefined
    /** A warning if this many more deliveries wait than at the start of the window. */
    readonly waitingGrowth?: "off" | number | undefined
    /** A critical alert at this many circuits that are open at the same time. */
    readonly circuitsOpen?: "off" | number | undefined
    /** A critical alert at this many dead letters of all tenants, each within its window. */
    readonly systemDeadLetters?: "off" | number | undefined
    /** A critical alert if rows of an outbox wait longer than this to be published. */
    readonly outboxTime?: "off" | string | undefined
    /** A warning at this many rows of all outboxes that are set aside. */
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
    /** A warning if fewer deliveries than this succeed, percent. */
    readonly successWarnPercent?: "off" | number | undefined
    /** A critical alert if fewer deliveries than this succeed, percent. */
    readonly successCriticalPercent?: "off" | number | undefined
    /** A warning if the first attempt of more deliveries than this must be retried, percent. */
    readonly retriesPercent?: "off" | number | undefined
    /** A warning if more final answers than this are permanent failures, percent. */
    readonly permanentPercent?: "off" | number | undefined
    /** A warning if successful deliveries take more attempts than this on average. */
    readonly attemptsPerDelivery?: "off" | number | undefined
    /** A warning if half of the deliveries take longer than this from the event to success. */
    readonly medianTime?: "off" | string | undefined
    /** A warning if 1 of 100 deliveries takes longer than this from the event to success. */
    readonly p99Time?: "off" | string | undefined
    /** A warning at this many dead letters of one endpoint within the window. */
    readonly deadLetters?: "off" | number | undefined
    /** A warning at this many dead letters of all endpoints of a tenant within the window. */
    readonly tenantDeadLetters?: "off" | number | undefined
    /** A warning at this many sources of a tenant that refuse every request. */
    readonly sourcesRefusing?: "off" | number | undefined
    /** A warning at this many requests of a tenant in quarantine. */
    readonly quarantined?: "off" | number | undefined
    /** A warning at this many events of a tenant's sources that had not come in when these were last reconciled. */
    readonly providerLost?: "off" | number | undefined
    /** A warning at this many failed attempts in a row while the circuit is closed. */
    readonly failuresInRow?: "off" | number | undefined
    /** Whether an open circuit is an alert. */
    readonly circuitOpened?: "on" | "off" | undefined
    /** Whether a disabled endpoint is an alert. */
    readonly endpointDisabled?: "on" | "off" | undefined
    /** Whether a suspended endpoint is an alert. */
    readonly endpointSuspended?: "on" | "off" | undefined
    /** Whether it is an alert if an endpoint answers with one status as many times in a row as `alert` of its retry policy says for that status. */
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
  /** The tenants. */
  readonly tenants: ReadonlyArray<{
    /** The name of the tenant. */
    readonly tenant: string
    /** How many endpoints it has. */
    readonly endpoints: number
  }>
  /** The `cursor` of the next page; absent at the end. */
  readonly next?: string
}

/** A change of settings: what is left out stays as it is, null removes a setting. */
export interface TenantPatch {
  /** Concurrent requests of all of the tenant's endpoints whose URLs have the same host name, 1 to 100,000. (Default: no limit) */
  readonly hostCap?: number | null | undefined
  /** Longest time-out of an attempt that endpoints of the tenant may have, 1 second to 24 hours, such as "15 minutes". A longer one that is stored is cut to it. (Default: the system's, else 5 minutes) */
  readonly maxTimeout?: string | null | undefined
  /** How many endpoints a tenant may have, 0 to 1,000,000. Those of the system hold for tenants without a number of their own. (Default: 1,000) */
  readonly maxEndpoints?: number | null | undefined
  /** How many tokens of the HTTP API, and as many links and sessions of browsers, a tenant may have, 0 to 1,000,000. Those of the system hold for tenants without a number of their own. (Default: 1,000) */
  readonly maxTokens?: number | null | undefined
  /** Headers of the publisher that all of the tenant's endpoints get, besides those that an endpoint names, by name: true adds one, null removes one. (Default: none) */
  readonly forwardHeaders?: { readonly [name: string]: true | null } | undefined
}

/** What is set for all endpoints of a tenant together, or of the system. */
export interface TenantSettings {
  /** Absent for the system. */
  readonly tenant?: string
  /** Concurrent requests of all of the tenant's endpoints whose URLs have the same host name, 1 to 100,000. (Default: no limit) */
  readonly hostCap?: number
  /** Longest time-out of an attempt that endpoints of the tenant may have, 1 second to 24 hours, such as "15 minutes". A longer one that is stored is cut to it. (Default: the system's, else 5 minutes) */
  readonly maxTimeout?: string
  /** How many endpoints a tenant may have, 0 to 1,000,000. Those of the system hold for tenants without a number of their own. (Default: 1,000) */
  readonly maxEndpoints?: number
  /** How many tokens of the HTTP API, and as many links and sessions of browsers, a tenant may have, 0 to 1,000,000. Those of the system hold for tenants without a number of their own. (Default: 1,000) */
  readonly maxTokens?: number
  /** Headers of the publisher that all of the tenant's endpoints get, besides those that an endpoint names, by name: true adds one, null removes one. (Default: none) */
  readonly forwardHeaders: ReadonlyArray<string>
  /** What the system has set, which holds for the tenant's endpoints, too. Absent for the system. */
  readonly system?: {
    readonly hostCap?: number
    readonly maxTimeout?: string
    readonly maxEndpoints?: number
    readonly maxTokens?: number
    readonly forwardHeaders: ReadonlyArray<string>
  }
  /** The revision in the endpoints bucket; 0 where nothing was ever set. */
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
  /** The name of the tenant. */
  readonly tenant: string
  /** The id of the endpoint. */
  readonly endpoint: string
  /** The event's id, as the receiver sees it. */
  readonly id: string
  /** The type of the event. */
  readonly type: string
  /** The body that was sent. */
  readonly body: string
  /** Where the request went. */
  readonly url: string
  /** The headers that were sent. */
  readonly headers: ReadonlyArray<string>
  /** When it was sent. */
  readonly at: string
  /** The status of the answer. */
  readonly status?: number
  /** Why there was no complete answer. */
  readonly error?: {
    /** The class of the error. */
    readonly class: "timeout" | "connect-timeout" | "refused" | "reset" | "unreachable" | "connection" | "dns" | "certificate" | "handshake" | "address" | "protocol" | "redirect" | "interrupted"
    /** What the error says. */
    readonly message: string
  }
  /** The answer. */
  readonly response?: {
    /** A selection of headers, by lower-case name. */
    readonly headers: { readonly [name: string]: string }
    /** The first 1 KiB, as text. */
    readonly body: string
    /** Bytes read; reading stops at 64 KiB. */
    readonly bytes: number
  }
  /** The redirects that were followed, in order. */
  readonly redirects?: ReadonlyArray<{
    /** The status of the answer that redirected. */
    readonly status: number
    /** Where to, without the query, which often carries tokens. */
    readonly to: string
  }>
  /** How long the request took, ms. */
  readonly durationMs: number
  /** How long it took to connect, ms. */
  readonly connectMs?: number
  /** When the answer began, ms after the request. */
  readonly firstByteMs?: number
  /** What Petrel makes of the answer. */
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
  /** `link`: it opens one session in a browser, once, and does nothing else. `session`: it is a browser's, in a cookie. (Default: a program's) */
  readonly use?: "link" | "session"
  /** Until when a link opens a session. */
  readonly opensUntil?: string
  /** The one endpoint of its tenant that it is about: everything else is as if it was not there. */
  readonly endpoint?: string
  /** What the pages of a portal show. */
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
  /** The tokens. */
  readonly tokens: ReadonlyArray<Token>
}

/** What happened to a tenant's events within an hour or a day (UTC). */
export interface Totals {
  /** When the period begins. */
  readonly begins: string
  /** The length of the period, or what is summed up. */
  readonly by: "hour" | "day"
  /** The name of the tenant. */
  readonly tenant: string
  /** Events that were routed. */
  readonly events: number
  /** Deliveries that plans, redeliveries and replays began. */
  readonly begun: number
  /** Deliveries that ended with success. */
  readonly delivered: number
  /** Deliveries that plans left out, as the endpoint was disabled. */
  readonly skipped: number
  /** Of those delivered: recorded by a former owner. */
  readonly deliveredLate: number
  /** Attempts that were not the first of their round. */
  readonly retries: number
  /** Deliveries that ended as dead letters. */
  readonly deadLettered: number
  /** Dead letters that were discarded. */
  readonly discarded: number
  /** Recorded requests. */
  readonly attempts: number
  /** Of the deliveries that ended, from 0 to 1; null if none did. */
  readonly successRate: number | null
  /** Of the deliveries that ended, to two decimals; null if none did. */
  readonly meanAttempts: number | null
  /** Number of ended deliveries by the number of attempts that they took (`0`, `1`, `2`, `3-5`, `6-10`, `11-20`, `21+`), without empty groups. */
  readonly attemptCounts: { readonly [name: string]: number }
  /** From when the event was stored until it was delivered. Further rounds are left out. */
  readonly toSuccessMs: {
    /** The median, ms. */
    readonly p50: number
    /** 90% are not longer, ms. */
    readonly p90: number
    /** 99% are not longer, ms. */
    readonly p99: number
  } | null
  /** Of all attempts. */
  readonly latencyMs: {
    /** The median, ms. */
    readonly p50: number
    /** 90% are not longer, ms. */
    readonly p90: number
    /** 99% are not longer, ms. */
    readonly p99: number
  } | null
}

export interface TotalsList {
  /** The totals. */
  readonly totals: ReadonlyArray<Totals>
  /** Of totals that were read from the history: since when it has facts, where it has dropped some from after `since`. They are missing. */
  readonly keptSince?: string
  /** Of totals from the log of deliveries: the beginning of the oldest hour that it has. Where it is later than `since`, hours before are missing. */
  readonly oldestHour?: string | null
  /** Of totals from the log of deliveries: how far it is behind. The hours that `since` and `until` fall into count as a whole then. */
  readonly lag?: {
    /** Facts that are stored and not yet seen. */
    readonly facts: number
    /** How long ago the newest fact that was seen was stored, if there are newer ones. If none is known it is 0, or how long ago that was looked at, where that is more than 5 s. */
    readonly ms: number
  }
}

/** The workers that are running, and the partitions that none of them has. */
export interface Workers {
  /** The workers. */
  readonly workers: ReadonlyArray<{
    /** The id of the worker. */
    readonly worker: string
    /** Whether its last heartbeat is recent. */
    readonly alive: boolean
    /** The host that it runs on. */
    readonly host?: string
    /** When it was started. */
    readonly startedAt?: string
    /** What it does. */
    readonly roles?: ReadonlyArray<"router" | "deliver">
    /** It is stopping. */
    readonly leaving?: boolean
    /** The process id. */
    readonly pid?: number
    /** Partitions of its share that their owners do not hand over. */
    readonly withheld?: ReadonlyArray<{
      /** The index of the partition. */
      readonly partition: number
      /** The worker that owns it. */
      readonly owner: string
    }>
    /** The partitions whose leases it holds. */
    readonly partitions: ReadonlyArray<{
      /** The index of the partition. */
      readonly partition: number
      /** Whether it delivers; if not, it is taking the partition over or handing it on. */
      readonly delivering: boolean
      /** Requests that are under way. */
      readonly inFlight: number
      /** Deliveries in its memory. */
      readonly inMemory: number
    }>
  }>
  /** The partitions that no worker owns. */
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
