/* Made from the operations by `npm run reference`. */

import type { Bytes, CallOptions, Described, List } from "../operation.ts"
import type {
  AlertList,
  AlertThresholds_1,
  AttemptList,
  Audit,
  ChangedEndpoint,
  ChangedTenantSettings,
  CreatedToken,
  DeadLetterDetail,
  DeadLetterList,
  Delivery,
  DeliveryList,
  Diagnosis,
  DiscardedDeadLetter,
  DiscardedSeveral,
  EndpointDetail,
  EndpointHistory,
  EndpointList,
  EndpointPatch,
  EndpointSecrets,
  EndpointState,
  Event,
  EventList,
  GroupTotalsList,
  Health,
  Job,
  JobList,
  NewEndpoint,
  NewPortalLink,
  NewSource,
  NewToken,
  OutboxList,
  PortalLink,
  PortalLinkList,
  Projection,
  QuarantineChoice,
  QuarantineList,
  Quarantined,
  Reason,
  Recovery,
  RecoveryPlan,
  Redelivery,
  RedeliveryPlan,
  Release,
  ReleaseChoice,
  Released,
  ReleasedSeveral,
  RemovedEndpoint,
  RemovedSource,
  Replay,
  ReplayPlan,
  ResentDelivery,
  RetriedDelivery,
  RetriedEndpoint,
  Retry,
  RetryNow,
  RetryPlan,
  RetryPolicies,
  RetryPresetList,
  RevokedToken,
  RotatedEndpoint,
  Rotation,
  Source,
  SourceList,
  SourcePatch,
  SourceRotation,
  Stats,
  Status,
  SystemAlerts,
  TenantAlerts,
  TenantList,
  TenantPatch,
  TenantSettings,
  TestEvent,
  TestReport,
  Token,
  TokenList,
  TotalsList,
  Workers
} from "./schemas.ts"

/** All calls but publishing and following, by group. */
export interface Operations {
  readonly deliveries: {
    /**
     * Show what became of an event at each endpoint
     *
     * Scope: deliveries:read. Refused with not-found.
     */
    event(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The event's id, as receivers get it. */
      readonly event: string
    }, options?: CallOptions): Promise<Event>
    /**
     * Get an event's body, as receivers get it
     *
     * It has the event's content type.
     *
     * Scope: payloads:read. Refused with not-found.
     */
    eventBody(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The event's id, as receivers get it. */
      readonly event: string
    }, options?: CallOptions): Promise<Bytes>
    /**
     * Show a delivery: its rounds and attempts, and why it waits
     *
     * Scope: deliveries:read. Refused with not-found.
     */
    delivery(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The delivery's id, <event id>.<endpoint id>. */
      readonly delivery: string
    }, options?: CallOptions): Promise<Delivery>
    /**
     * Get the body of a delivery's event, as its receiver gets it
     *
     * It has the event's content type.
     *
     * Scope: payloads:read. Refused with not-found.
     */
    deliveryBody(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The delivery's id, <event id>.<endpoint id>. */
      readonly delivery: string
    }, options?: CallOptions): Promise<Bytes>
    /**
     * Sum up what happened, by hour, day, endpoint or event type
     *
     * Scope: deliveries:read.
     */
    totals(input?: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** Sum up by hour or day (UTC), or by endpoint or event type. (Default: hour) */
      readonly by?: "hour" | "day" | "endpoint" | "type" | undefined
      /** From then on. (Default: a day ago) */
      readonly since?: string | Date | undefined
      /** Up to then. (Default: now) */
      readonly until?: string | Date | undefined
      /** How many at most. (Default: 50) */
      readonly limit?: number | undefined
    }, options?: CallOptions): Promise<TotalsList | GroupTotalsList>
    /**
     * List the alerts that are raised
     *
     * Scope: deliveries:read.
     */
    alerts(input?: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** How many at most. (Default: 50) */
      readonly limit?: number | undefined
    }, options?: CallOptions): List<AlertList["alerts"][number], AlertList>
  }
  readonly log: {
    /**
     * Search the log of deliveries, newest first
     *
     * Scope: deliveries:read.
     */
    list(input?: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** How many at most. (Default: 50) */
      readonly limit?: number | undefined
      /** Only those of this endpoint. May be repeated, as most filters: any holds. */
      readonly endpoint?: string | ReadonlyArray<string> | undefined
      /** The event's id, or its beginning if it ends with `*`. */
      readonly event?: string | undefined
      /** The event's type, or its beginning if it ends with `*`: `invoice.*`. */
      readonly type?: string | ReadonlyArray<string> | undefined
      /** Only those in this state. */
      readonly state?: "waiting" | "delivered" | "dead-lettered" | "discarded" | "skipped" | ReadonlyArray<"waiting" | "delivered" | "dead-lettered" | "discarded" | "skipped"> | undefined
      /** The status of the last answer, or its class: `503`, `5xx`; `none`: there is no complete answer. */
      readonly status?: string | ReadonlyArray<string> | undefined
      /** The class of the last attempt's error. */
      readonly error?: "timeout" | "connect-timeout" | "refused" | "reset" | "unreachable" | "connection" | "dns" | "certificate" | "handshake" | "address" | "protocol" | "redirect" | "interrupted" | ReadonlyArray<"timeout" | "connect-timeout" | "refused" | "reset" | "unreachable" | "connection" | "dns" | "certificate" | "handshake" | "address" | "protocol" | "redirect" | "interrupted"> | undefined
      /** Ended then or later. */
      readonly since?: string | Date | undefined
      /** Ended then or earlier. */
      readonly until?: string | Date | undefined
    }, options?: CallOptions): List<DeliveryList["deliveries"][number], DeliveryList>
    /**
     * Search the log of attempts, newest first
     *
     * Requests that were made to receivers. With the scope payloads:read, with what they answered, as far as it is kept.
     *
     * Scope: deliveries:read.
     */
    attempts(input?: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** How many at most. (Default: 50) */
      readonly limit?: number | undefined
      /** Only those of this endpoint. May be repeated, as most filters: any holds. */
      readonly endpoint?: string | ReadonlyArray<string> | undefined
      /** The event's id, or its beginning if it ends with `*`. */
      readonly event?: string | undefined
      /** The event's type, or its beginning if it ends with `*`: `invoice.*`. */
      readonly type?: string | ReadonlyArray<string> | undefined
      /** Its outcome. */
      readonly outcome?: "success" | "failure" | undefined
      /** The status of its complete answer, or its class: `503`, `5xx`; `none`: it got none. */
      readonly status?: string | ReadonlyArray<string> | undefined
      /** The class of its error. */
      readonly error?: "timeout" | "connect-timeout" | "refused" | "reset" | "unreachable" | "connection" | "dns" | "certificate" | "handshake" | "address" | "protocol" | "redirect" | "interrupted" | ReadonlyArray<"timeout" | "connect-timeout" | "refused" | "reset" | "unreachable" | "connection" | "dns" | "certificate" | "handshake" | "address" | "protocol" | "redirect" | "interrupted"> | undefined
      /** Made then or later. */
      readonly since?: string | Date | undefined
      /** Made then or earlier. */
      readonly until?: string | Date | undefined
    }, options?: CallOptions): List<AttemptList["attempts"][number], AttemptList>
    /**
     * Search the log of events, newest first
     *
     * Events that were routed, including those that no endpoint wanted.
     *
     * Scope: deliveries:read.
     */
    events(input?: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** How many at most. (Default: 50) */
      readonly limit?: number | undefined
      /** The event's type, or its beginning if it ends with `*`: `invoice.*`. */
      readonly type?: string | ReadonlyArray<string> | undefined
      /** How it came: `http`, `nats-api` (through the API), `nats` (published to its subject), `stream:<name>` (copied from a stream), or its beginning if it ends with `*`. */
      readonly channel?: string | ReadonlyArray<string> | undefined
      /** Stored then or later. */
      readonly since?: string | Date | undefined
      /** Stored then or earlier. */
      readonly until?: string | Date | undefined
    }, options?: CallOptions): List<EventList["events"][number], EventList>
    /**
     * Show how many attempts of a tenant succeed, how they are answered, and how fast
     *
     * Scope: deliveries:read.
     */
    stats(input?: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** From the hour on that it falls into. (Default: a day ago) */
      readonly since?: string | Date | undefined
      /** Up to the end of its hour. (Default: now) */
      readonly until?: string | Date | undefined
      /** By hour or day (UTC). (Default: hour) */
      readonly by?: "hour" | "day" | undefined
    }, options?: CallOptions): Promise<Stats>
    /**
     * Show how many attempts at an endpoint succeed, how they are answered, and how fast
     *
     * Scope: deliveries:read.
     */
    endpointStats(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The endpoint's id within its tenant. */
      readonly id: string
      /** From the hour on that it falls into. (Default: a day ago) */
      readonly since?: string | Date | undefined
      /** Up to the end of its hour. (Default: now) */
      readonly until?: string | Date | undefined
      /** By hour or day (UTC). (Default: hour) */
      readonly by?: "hour" | "day" | undefined
    }, options?: CallOptions): Promise<Stats>
    /**
     * Show the state of the log of deliveries
     *
     * Scope: operator.
     */
    projection(input?: {}, options?: CallOptions): Promise<Projection>
  }
  readonly attempts: {
    /**
     * Send an endpoint one test event, and show its answer
     *
     * A type other than petrel.test, or a body, needs the scope events:publish, too. The values of the signature and of the endpoint's own headers are masked, and what the receiver answered but for its status is shown with the scope payloads:read only.
     *
     * Scope: endpoints:write. Refused with not-found, key-reused, conflict.
     */
    test(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The endpoint's id within its tenant. */
      readonly id: string
    } & TestEvent, options?: CallOptions & {
      /** Makes repeating safe: for 24 hours, the same request with the same token and the same key is carried out once, and a repetition gets the first answer again (`Idempotency-Replayed: true`). With other fields the answer is 422; while the first request is still being carried out, 409. A request that failed may be repeated with its key. */
      readonly idempotencyKey?: string | undefined
    }): Promise<TestReport>
    /**
     * Try now what waits for its next attempt
     *
     * Scope: endpoints:write. Refused with not-found, conflict.
     */
    retryNow(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The endpoint's id within its tenant. */
      readonly id: string
    } & RetryNow, options?: CallOptions): Promise<RetriedEndpoint>
    /**
     * Find out why an endpoint gets nothing or fails
     *
     * What the receiver answered is quoted with the scope payloads:read only.
     *
     * Scope: endpoints:read. Refused with not-found.
     */
    diagnose(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The endpoint's id within its tenant. */
      readonly id: string
    }, options?: CallOptions): Promise<Diagnosis>
    /**
     * Try a delivery now that waits for its next attempt
     *
     * Scope: endpoints:write. Refused with not-found, conflict.
     */
    retryDelivery(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The delivery's id, <event id>.<endpoint id>. */
      readonly delivery: string
    } & RetryNow, options?: CallOptions): Promise<RetriedDelivery>
    /**
     * Send a delivery once more, also one that succeeded
     *
     * Scope: replay:write. Refused with not-found, conflict, key-reused.
     */
    resend(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The delivery's id, <event id>.<endpoint id>. */
      readonly delivery: string
    }, options?: CallOptions & {
      /** Makes repeating safe: for 24 hours, the same request with the same token and the same key is carried out once, and a repetition gets the first answer again (`Idempotency-Replayed: true`). With other fields the answer is 422; while the first request is still being carried out, 409. A request that failed may be repeated with its key. */
      readonly idempotencyKey?: string | undefined
    }): Promise<ResentDelivery>
  }
  readonly deadLetters: {
    /**
     * List deliveries that ended without success, oldest first
     *
     * Scope: dead:read.
     */
    list(input?: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** How many at most. (Default: 50) */
      readonly limit?: number | undefined
      /** Only those of this endpoint. May be repeated, as `reason` and `status`: any holds. */
      readonly endpoint?: string | ReadonlyArray<string> | undefined
      /** Only those that ended for this reason. */
      readonly reason?: "permanent" | "attempts" | "status-limit" | "deadline" | "endpoint-disabled" | "endpoint-removed" | "circuit-open" | "backlog-full" | "defect" | "event-gone" | "gone" | ReadonlyArray<"permanent" | "attempts" | "status-limit" | "deadline" | "endpoint-disabled" | "endpoint-removed" | "circuit-open" | "backlog-full" | "defect" | "event-gone" | "gone"> | undefined
      /** The last answer's status, or its class: `503`, `5xx`. */
      readonly status?: string | ReadonlyArray<string> | undefined
      /** Only those of these event types: `invoice.paid`, `invoice.*`. */
      readonly type?: string | ReadonlyArray<string> | undefined
      /** Ended from then on. */
      readonly since?: string | Date | undefined
      /** Ended up to then. */
      readonly until?: string | Date | undefined
      /** `true`: only those that were neither sent again nor delivered late. Such a page looks at 1,000 at most: it may be shorter than `limit`, and yet have `next`. (Default: false) */
      readonly open?: "true" | "false" | undefined
    }, options?: CallOptions): List<DeadLetterList["deadLetters"][number], DeadLetterList>
    /**
     * Show a dead letter, and how each attempt went
     *
     * Scope: dead:read. Refused with not-found.
     */
    get(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The dead letter's number. */
      readonly number: number
    }, options?: CallOptions): Promise<DeadLetterDetail>
    /**
     * Remove a dead letter for good
     *
     * Scope: dead:write. Refused with not-found, conflict.
     */
    discard(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The dead letter's number. */
      readonly number: number
    }, options?: CallOptions): Promise<DiscardedDeadLetter>
  }
  readonly jobs: {
    /**
     * Send dead letters again, each delivery once
     *
     * Of several dead letters of one delivery that are selected, only the newest is sent; `superseded` counts the others.
     *
     * Scope: dead:write. Refused with conflict, key-reused.
     */
    redeliver(input?: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
    } & Redelivery & { readonly dryRun: true }, options?: CallOptions & {
      /** Makes repeating safe: for 24 hours, the same request with the same token and the same key is carried out once, and a repetition gets the first answer again (`Idempotency-Replayed: true`). With other fields the answer is 422; while the first request is still being carried out, 409. A request that failed may be repeated with its key. */
      readonly idempotencyKey?: string | undefined
    }): Promise<RedeliveryPlan>
    /**
     * Send dead letters again, each delivery once
     *
     * Of several dead letters of one delivery that are selected, only the newest is sent; `superseded` counts the others.
     *
     * Scope: dead:write. Refused with conflict, key-reused.
     */
    redeliver(input?: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
    } & Redelivery & { readonly dryRun?: false | undefined }, options?: CallOptions & {
      /** Makes repeating safe: for 24 hours, the same request with the same token and the same key is carried out once, and a repetition gets the first answer again (`Idempotency-Replayed: true`). With other fields the answer is 422; while the first request is still being carried out, 409. A request that failed may be repeated with its key. */
      readonly idempotencyKey?: string | undefined
    }): Promise<Job>
    /**
     * List redeliveries, newest first
     *
     * Scope: dead:write.
     */
    listRedeliveries(input?: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** How many at most. (Default: 50) */
      readonly limit?: number | undefined
    }, options?: CallOptions): List<JobList["jobs"][number], JobList>
    /**
     * Show how far a redelivery has come
     *
     * Scope: dead:write. Refused with not-found.
     */
    getRedelivery(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The job's id. */
      readonly job: string
    }, options?: CallOptions): Promise<Job>
    /**
     * End a redelivery where it is
     *
     * Scope: dead:write. Refused with not-found.
     */
    cancelRedelivery(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The job's id. */
      readonly job: string
    }, options?: CallOptions): Promise<Job>
    /**
     * Send events of the past to an endpoint once more
     *
     * Scope: replay:write. Refused with not-found, conflict, key-reused.
     */
    replay(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
    } & Replay & { readonly dryRun: true }, options?: CallOptions & {
      /** Makes repeating safe: for 24 hours, the same request with the same token and the same key is carried out once, and a repetition gets the first answer again (`Idempotency-Replayed: true`). With other fields the answer is 422; while the first request is still being carried out, 409. A request that failed may be repeated with its key. */
      readonly idempotencyKey?: string | undefined
    }): Promise<ReplayPlan>
    /**
     * Send events of the past to an endpoint once more
     *
     * Scope: replay:write. Refused with not-found, conflict, key-reused.
     */
    replay(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
    } & Replay & { readonly dryRun?: false | undefined }, options?: CallOptions & {
      /** Makes repeating safe: for 24 hours, the same request with the same token and the same key is carried out once, and a repetition gets the first answer again (`Idempotency-Replayed: true`). With other fields the answer is 422; while the first request is still being carried out, 409. A request that failed may be repeated with its key. */
      readonly idempotencyKey?: string | undefined
    }): Promise<Job>
    /**
     * List replays, newest first
     *
     * Scope: replay:write.
     */
    listReplays(input?: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** How many at most. (Default: 50) */
      readonly limit?: number | undefined
    }, options?: CallOptions): List<JobList["jobs"][number], JobList>
    /**
     * Show how far a replay has come
     *
     * Scope: replay:write. Refused with not-found.
     */
    getReplay(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The job's id. */
      readonly job: string
    }, options?: CallOptions): Promise<Job>
    /**
     * End a replay where it is
     *
     * Scope: replay:write. Refused with not-found.
     */
    cancelReplay(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The job's id. */
      readonly job: string
    }, options?: CallOptions): Promise<Job>
    /**
     * Check that every event reached every endpoint it was for
     *
     * Scope: operator. Refused with conflict, key-reused.
     */
    audit(input?: Audit, options?: CallOptions & {
      /** Makes repeating safe: for 24 hours, the same request with the same token and the same key is carried out once, and a repetition gets the first answer again (`Idempotency-Replayed: true`). With other fields the answer is 422; while the first request is still being carried out, 409. A request that failed may be repeated with its key. */
      readonly idempotencyKey?: string | undefined
    }): Promise<Job>
    /**
     * List audits, newest first
     *
     * Scope: operator.
     */
    listAudits(input?: {
      /** How many at most. (Default: 50) */
      readonly limit?: number | undefined
    }, options?: CallOptions): List<JobList["jobs"][number], JobList>
    /**
     * Show how far an audit has come, or what it found
     *
     * Scope: operator. Refused with not-found.
     */
    getAudit(input: {
      /** The job's id. */
      readonly job: string
    }, options?: CallOptions): Promise<Job>
    /**
     * End an audit
     *
     * Scope: operator. Refused with not-found.
     */
    cancelAudit(input: {
      /** The job's id. */
      readonly job: string
    }, options?: CallOptions): Promise<Job>
  }
  readonly retries: {
    /**
     * Try now the deliveries of a tenant that wait for their next attempt, selected by a filter
     *
     * Scope: endpoints:write. Refused with not-found, conflict, key-reused.
     */
    retry(input?: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
    } & Retry & { readonly dryRun: true }, options?: CallOptions & {
      /** Makes repeating safe: for 24 hours, the same request with the same token and the same key is carried out once, and a repetition gets the first answer again (`Idempotency-Replayed: true`). With other fields the answer is 422; while the first request is still being carried out, 409. A request that failed may be repeated with its key. */
      readonly idempotencyKey?: string | undefined
    }): Promise<RetryPlan>
    /**
     * Try now the deliveries of a tenant that wait for their next attempt, selected by a filter
     *
     * Scope: endpoints:write. Refused with not-found, conflict, key-reused.
     */
    retry(input?: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
    } & Retry & { readonly dryRun?: false | undefined }, options?: CallOptions & {
      /** Makes repeating safe: for 24 hours, the same request with the same token and the same key is carried out once, and a repetition gets the first answer again (`Idempotency-Replayed: true`). With other fields the answer is 422; while the first request is still being carried out, 409. A request that failed may be repeated with its key. */
      readonly idempotencyKey?: string | undefined
    }): Promise<Job>
    /**
     * List bulk retries, newest first
     *
     * Scope: endpoints:write.
     */
    listRetries(input?: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** How many at most. (Default: 50) */
      readonly limit?: number | undefined
    }, options?: CallOptions): List<JobList["jobs"][number], JobList>
    /**
     * Show how far a bulk retry has come
     *
     * Scope: endpoints:write. Refused with not-found.
     */
    getRetry(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The job's id. */
      readonly job: string
    }, options?: CallOptions): Promise<Job>
    /**
     * End a bulk retry where it is
     *
     * Scope: endpoints:write. Refused with not-found.
     */
    cancelRetry(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The job's id. */
      readonly job: string
    }, options?: CallOptions): Promise<Job>
    /**
     * Send again all that failed at an endpoint since a time
     *
     * Deliveries that wait for their next attempt are tried now, and dead letters are sent again, each delivery once: asking twice sends nothing twice. Of several dead letters of one delivery, only the newest is sent. Events that it missed while it was disabled are for a replay (`skipped`).
     *
     * Scope: dead:write. Refused with not-found, conflict, key-reused.
     */
    recover(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The endpoint's id within its tenant. */
      readonly id: string
    } & Recovery & { readonly dryRun: true }, options?: CallOptions & {
      /** Makes repeating safe: for 24 hours, the same request with the same token and the same key is carried out once, and a repetition gets the first answer again (`Idempotency-Replayed: true`). With other fields the answer is 422; while the first request is still being carried out, 409. A request that failed may be repeated with its key. */
      readonly idempotencyKey?: string | undefined
    }): Promise<RecoveryPlan>
    /**
     * Send again all that failed at an endpoint since a time
     *
     * Deliveries that wait for their next attempt are tried now, and dead letters are sent again, each delivery once: asking twice sends nothing twice. Of several dead letters of one delivery, only the newest is sent. Events that it missed while it was disabled are for a replay (`skipped`).
     *
     * Scope: dead:write. Refused with not-found, conflict, key-reused.
     */
    recover(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The endpoint's id within its tenant. */
      readonly id: string
    } & Recovery & { readonly dryRun?: false | undefined }, options?: CallOptions & {
      /** Makes repeating safe: for 24 hours, the same request with the same token and the same key is carried out once, and a repetition gets the first answer again (`Idempotency-Replayed: true`). With other fields the answer is 422; while the first request is still being carried out, 409. A request that failed may be repeated with its key. */
      readonly idempotencyKey?: string | undefined
    }): Promise<Job>
    /**
     * List recoveries, newest first
     *
     * Scope: dead:write.
     */
    listRecoveries(input?: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** How many at most. (Default: 50) */
      readonly limit?: number | undefined
    }, options?: CallOptions): List<JobList["jobs"][number], JobList>
    /**
     * Show how far a recovery has come
     *
     * Scope: dead:write. Refused with not-found.
     */
    getRecovery(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The job's id. */
      readonly job: string
    }, options?: CallOptions): Promise<Job>
    /**
     * End a recovery where it is
     *
     * Scope: dead:write. Refused with not-found.
     */
    cancelRecovery(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The job's id. */
      readonly job: string
    }, options?: CallOptions): Promise<Job>
  }
  readonly endpoints: {
    /**
     * List endpoints, in the order of their names
     *
     * Scope: endpoints:read.
     */
    list(input?: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** How many at most. (Default: 50) */
      readonly limit?: number | undefined
      /** The endpoint's id, or its beginning if it ends with `*`: `billing-*`. */
      readonly id?: string | undefined
      /** Only those in this state, or in one of several: what keeps deliveries from the endpoint (`paused`, `suspended`, `disabled`), else the state of its circuit. It was read just before, and may have changed. */
      readonly state?: "closed" | "open" | "half-open" | "paused" | "suspended" | "disabled" | ReadonlyArray<"closed" | "open" | "half-open" | "paused" | "suspended" | "disabled"> | undefined
      /** Only those with this entry of metadata, `name=value`; of several, all. A page looks at 200 endpoints at most: it may be shorter than `limit`, and yet have `next`. */
      readonly metadata?: string | ReadonlyArray<string> | undefined
    }, options?: CallOptions): List<EndpointList["endpoints"][number], EndpointList>
    /**
     * Add an endpoint under an id that is made for it
     *
     * Its path is in `Location`. A repetition with the same Idempotency-Key is answered without the secret that was made.
     *
     * Scope: endpoints:write. Refused with conflict, key-reused.
     */
    create(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
    } & NewEndpoint, options?: CallOptions & {
      /** Makes repeating safe: for 24 hours, the same request with the same token and the same key is carried out once, and a repetition gets the first answer again (`Idempotency-Replayed: true`). With other fields the answer is 422; while the first request is still being carried out, 409. A request that failed may be repeated with its key. */
      readonly idempotencyKey?: string | undefined
    }): Promise<ChangedEndpoint>
    /**
     * Show an endpoint, its health and what waits for it
     *
     * Scope: endpoints:read. Refused with not-found.
     */
    get(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The endpoint's id within its tenant. */
      readonly id: string
    }, options?: CallOptions & {
      readonly ifNoneMatch?: undefined
    }): Promise<EndpointDetail>
    /**
     * Show an endpoint, its health and what waits for it
     *
     * Scope: endpoints:read. Refused with not-found.
     */
    get(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The endpoint's id within its tenant. */
      readonly id: string
    }, options?: CallOptions & {
      /** One or more ETags that you know: if one of them is still current, the answer is 304 without a body. An ETag covers the settings only: the endpoint's health may change while it stays the same. */
      readonly ifNoneMatch?: string | number | undefined
    }): Promise<EndpointDetail | undefined>
    /**
     * List the changes of an endpoint, newest first, also of a removed one
     *
     * The latest 500. Secrets and the values of headers are in none of them.
     *
     * Scope: endpoints:read. Refused with not-found.
     */
    history(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The endpoint's id within its tenant. */
      readonly id: string
      /** How many at most. (Default: 50) */
      readonly limit?: number | undefined
    }, options?: CallOptions): List<EndpointHistory["changes"][number], EndpointHistory>
    /**
     * Show the waits of an endpoint's retry policies, with what jitter makes of them
     *
     * Scope: endpoints:read. Refused with not-found, conflict.
     */
    retryPolicies(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The endpoint's id within its tenant. */
      readonly id: string
      /** Only the policy that holds for this event type. */
      readonly type?: string | undefined
    }, options?: CallOptions): Promise<RetryPolicies>
    /**
     * Add an endpoint, or replace its settings
     *
     * Settings that are left out go back to their defaults; secrets and the state remain. With If-Match, only the revision that you know is replaced.
     *
     * Scope: endpoints:write. Refused with not-found, revision-mismatch, conflict.
     */
    put(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The endpoint's id within its tenant. */
      readonly id: string
    } & NewEndpoint, options?: CallOptions & {
      /** The ETag that you know, such as `"42"`, or several separated by commas: the change is refused (412) if none of them is current. `*`: only if it is there. A weak tag (`W/"42"`) never matches. */
      readonly ifMatch?: string | number | undefined
      /** `*`: only if there is no such endpoint yet, else 412. */
      readonly ifNoneMatch?: "*" | undefined
    }): Promise<ChangedEndpoint>
    /**
     * Change some settings of an endpoint, and leave the rest
     *
     * A URL of another origin drops the endpoint's own headers, unless the request gives them again or the token has the scope secrets:read: `cautions` names them. The signing secret stays until it is rotated.
     *
     * Scope: endpoints:write. Refused with not-found, revision-mismatch, conflict.
     */
    patch(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The endpoint's id within its tenant. */
      readonly id: string
    } & EndpointPatch, options?: CallOptions & {
      /** The ETag that you know, such as `"42"`, or several separated by commas: the change is refused (412) if none of them is current. `*`: only if it is there. A weak tag (`W/"42"`) never matches. */
      readonly ifMatch?: string | number | undefined
    }): Promise<ChangedEndpoint>
    /**
     * Remove an endpoint; its waiting deliveries become dead letters
     *
     * Scope: endpoints:write. Refused with not-found, revision-mismatch, conflict.
     */
    remove(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The endpoint's id within its tenant. */
      readonly id: string
    }, options?: CallOptions & {
      /** The ETag that you know, such as `"42"`, or several separated by commas: the change is refused (412) if none of them is current. `*`: only if it is there. A weak tag (`W/"42"`) never matches. */
      readonly ifMatch?: string | number | undefined
    }): Promise<RemovedEndpoint>
    /**
     * Put a disabled endpoint back to work
     *
     * Scope: endpoints:write. Refused with not-found, revision-mismatch, conflict.
     */
    enable(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The endpoint's id within its tenant. */
      readonly id: string
    }, options?: CallOptions & {
      /** The ETag that you know, such as `"42"`, or several separated by commas: the change is refused (412) if none of them is current. `*`: only if it is there. A weak tag (`W/"42"`) never matches. */
      readonly ifMatch?: string | number | undefined
    }): Promise<EndpointState>
    /**
     * Take an endpoint out of service; its waiting deliveries become dead letters
     *
     * Scope: endpoints:write. Refused with not-found, revision-mismatch, conflict.
     */
    disable(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The endpoint's id within its tenant. */
      readonly id: string
    } & Reason, options?: CallOptions & {
      /** The ETag that you know, such as `"42"`, or several separated by commas: the change is refused (412) if none of them is current. `*`: only if it is there. A weak tag (`W/"42"`) never matches. */
      readonly ifMatch?: string | number | undefined
    }): Promise<EndpointState>
    /**
     * Hold an endpoint's deliveries back until it is resumed
     *
     * Scope: endpoints:write. Refused with not-found, revision-mismatch, conflict.
     */
    pause(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The endpoint's id within its tenant. */
      readonly id: string
    } & Reason, options?: CallOptions & {
      /** The ETag that you know, such as `"42"`, or several separated by commas: the change is refused (412) if none of them is current. `*`: only if it is there. A weak tag (`W/"42"`) never matches. */
      readonly ifMatch?: string | number | undefined
    }): Promise<EndpointState>
    /**
     * Resume the deliveries of a paused or suspended endpoint
     *
     * Scope: endpoints:write. Refused with not-found, revision-mismatch, conflict.
     */
    resume(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The endpoint's id within its tenant. */
      readonly id: string
    }, options?: CallOptions & {
      /** The ETag that you know, such as `"42"`, or several separated by commas: the change is refused (412) if none of them is current. `*`: only if it is there. A weak tag (`W/"42"`) never matches. */
      readonly ifMatch?: string | number | undefined
    }): Promise<EndpointState>
    /**
     * Give an endpoint a new secret; the old ones stay valid for a while
     *
     * Scope: endpoints:write. Refused with not-found, revision-mismatch, conflict.
     */
    rotate(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The endpoint's id within its tenant. */
      readonly id: string
    } & Rotation, options?: CallOptions & {
      /** The ETag that you know, such as `"42"`, or several separated by commas: the change is refused (412) if none of them is current. `*`: only if it is there. A weak tag (`W/"42"`) never matches. */
      readonly ifMatch?: string | number | undefined
    }): Promise<RotatedEndpoint>
    /**
     * Show an endpoint's secrets and the values of its headers
     *
     * The history records who was shown them (`secrets-revealed`).
     *
     * Scope: secrets:read. Refused with not-found.
     */
    secret(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The endpoint's id within its tenant. */
      readonly id: string
    }, options?: CallOptions): Promise<EndpointSecrets>
  }
  readonly sources: {
    /**
     * List the sources of events, in the order of their names
     *
     * Scope: endpoints:read.
     */
    list(input?: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
    }, options?: CallOptions): Promise<SourceList>
    /**
     * Show a source, without its secrets
     *
     * Scope: endpoints:read. Refused with not-found, conflict.
     */
    get(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The source's name within its tenant. */
      readonly id: string
    }, options?: CallOptions): Promise<Source>
    /**
     * Receive a provider's webhooks
     *
     * Scope: endpoints:write. Refused with conflict.
     */
    add(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The source's name within its tenant. */
      readonly id: string
    } & NewSource, options?: CallOptions): Promise<Source>
    /**
     * Change some settings of a source, and leave the rest
     *
     * Scope: endpoints:write. Refused with not-found, revision-mismatch, conflict.
     */
    patch(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The source's name within its tenant. */
      readonly id: string
    } & SourcePatch, options?: CallOptions & {
      /** The ETag that you know, such as `"42"`, or several separated by commas: the change is refused (412) if none of them is current. `*`: only if it is there. A weak tag (`W/"42"`) never matches. */
      readonly ifMatch?: string | number | undefined
    }): Promise<Source>
    /**
     * Give a source a new secret; the old ones stay valid for a while
     *
     * Scope: endpoints:write. Refused with not-found, revision-mismatch, conflict.
     */
    rotate(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The source's name within its tenant. */
      readonly id: string
    } & SourceRotation, options?: CallOptions & {
      /** The ETag that you know, such as `"42"`, or several separated by commas: the change is refused (412) if none of them is current. `*`: only if it is there. A weak tag (`W/"42"`) never matches. */
      readonly ifMatch?: string | number | undefined
    }): Promise<Source>
    /**
     * Remove a source: what its provider sends from then on is refused
     *
     * Scope: endpoints:write. Refused with not-found, revision-mismatch, conflict.
     */
    remove(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The source's name within its tenant. */
      readonly id: string
    }, options?: CallOptions & {
      /** The ETag that you know, such as `"42"`, or several separated by commas: the change is refused (412) if none of them is current. `*`: only if it is there. A weak tag (`W/"42"`) never matches. */
      readonly ifMatch?: string | number | undefined
    }): Promise<RemovedSource>
  }
  readonly quarantine: {
    /**
     * List the requests in quarantine, oldest first
     *
     * Scope: payloads:read.
     */
    list(input?: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
    }, options?: CallOptions): Promise<QuarantineList>
    /**
     * Show a request in quarantine, and its bytes
     *
     * Scope: payloads:read. Refused with not-found.
     */
    get(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The dead letter's number. */
      readonly number: number
    }, options?: CallOptions): Promise<Quarantined>
    /**
     * Make a request in quarantine an event
     *
     * Scope: events:publish. Refused with not-found, conflict.
     */
    release(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The dead letter's number. */
      readonly number: number
    } & Release, options?: CallOptions): Promise<Released>
    /**
     * Make several requests in quarantine events
     *
     * Each is released by itself, oldest first. What cannot be an event stays there, and is in `left` with its problem.
     *
     * Scope: events:publish. Refused with conflict.
     */
    releaseSeveral(input?: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
    } & ReleaseChoice, options?: CallOptions): Promise<ReleasedSeveral>
    /**
     * Remove a request from quarantine for good
     *
     * Scope: events:publish. Refused with not-found.
     */
    discard(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The dead letter's number. */
      readonly number: number
    }, options?: CallOptions): Promise<Quarantined>
    /**
     * Remove several requests from quarantine for good
     *
     * Scope: events:publish.
     */
    discardSeveral(input?: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
    } & QuarantineChoice, options?: CallOptions): Promise<DiscardedSeveral>
  }
  readonly settings: {
    /**
     * Show what is set for all endpoints of a tenant
     *
     * Scope: endpoints:read.
     */
    tenant(input?: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
    }, options?: CallOptions): Promise<TenantSettings>
    /**
     * Change what is set for all endpoints of a tenant
     *
     * Scope: operator. Refused with revision-mismatch.
     */
    changeTenant(input?: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
    } & TenantPatch, options?: CallOptions & {
      /** The ETag that you know, such as `"42"`, or several separated by commas: the change is refused (412) if none of them is current. `*`: only if it is there. A weak tag (`W/"42"`) never matches. */
      readonly ifMatch?: string | number | undefined
    }): Promise<ChangedTenantSettings>
    /**
     * Show when alerts are raised about a tenant and its endpoints
     *
     * Scope: endpoints:read.
     */
    thresholds(input?: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
    }, options?: CallOptions): Promise<AlertThresholds_1>
    /**
     * Replace when alerts are raised about a tenant and its endpoints
     *
     * Scope: endpoints:write. Refused with revision-mismatch.
     */
    setThresholds(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
    } & TenantAlerts, options?: CallOptions & {
      /** The ETag that you know, such as `"42"`, or several separated by commas: the change is refused (412) if none of them is current. `*`: only if it is there. A weak tag (`W/"42"`) never matches. */
      readonly ifMatch?: string | number | undefined
    }): Promise<AlertThresholds_1>
    /**
     * List the retry policies that have a name
     *
     * Scope: endpoints:read.
     */
    presets(input?: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
    }, options?: CallOptions): Promise<RetryPresetList>
    /**
     * Show what is set for the endpoints of all tenants
     *
     * Scope: operator.
     */
    system(input?: {}, options?: CallOptions): Promise<TenantSettings>
    /**
     * Change what is set for the endpoints of all tenants
     *
     * Scope: operator. Refused with revision-mismatch.
     */
    changeSystem(input?: TenantPatch, options?: CallOptions & {
      /** The ETag that you know, such as `"42"`, or several separated by commas: the change is refused (412) if none of them is current. `*`: only if it is there. A weak tag (`W/"42"`) never matches. */
      readonly ifMatch?: string | number | undefined
    }): Promise<ChangedTenantSettings>
    /**
     * Show when alerts are raised about the system, and about tenants without thresholds
     *
     * Scope: operator.
     */
    systemThresholds(input?: {}, options?: CallOptions): Promise<AlertThresholds_1>
    /**
     * Replace when alerts are raised about the system, and about tenants without thresholds
     *
     * Scope: operator. Refused with revision-mismatch.
     */
    setSystemThresholds(input: SystemAlerts, options?: CallOptions & {
      /** The ETag that you know, such as `"42"`, or several separated by commas: the change is refused (412) if none of them is current. `*`: only if it is there. A weak tag (`W/"42"`) never matches. */
      readonly ifMatch?: string | number | undefined
    }): Promise<AlertThresholds_1>
  }
  readonly tokens: {
    /**
     * Make a token that can do no more than the one that makes it
     *
     * Its scopes, rate and expiry are at most those of the token that it is made with, and it is revoked with that one. A repetition with the same Idempotency-Key is answered with 200 and without the token itself, which is kept nowhere: if the first answer was lost, revoke that one by its id and make another.
     *
     * Scope: tokens:write. Refused with conflict, key-reused.
     */
    create(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
    } & NewToken, options?: CallOptions & {
      /** Makes repeating safe: for 24 hours, the same request with the same token and the same key is carried out once, and a repetition gets the first answer again (`Idempotency-Replayed: true`). With other fields the answer is 422; while the first request is still being carried out, 409. A request that failed may be repeated with its key. */
      readonly idempotencyKey?: string | undefined
    }): Promise<Token | CreatedToken>
    /**
     * List tokens, without their secrets
     *
     * Scope: tokens:write.
     */
    list(input?: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
    }, options?: CallOptions): Promise<TokenList>
    /**
     * Show a token, without its secret
     *
     * Scope: tokens:write. Refused with not-found.
     */
    get(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The token's id. */
      readonly token: string
    }, options?: CallOptions): Promise<Token>
    /**
     * Revoke a token and those made with it: they are refused within a second
     *
     * A token revokes those whose scopes it has itself, and none that it was made with.
     *
     * Scope: tokens:write. Refused with not-found.
     */
    revoke(input: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
      /** The token's id. */
      readonly token: string
    }, options?: CallOptions): Promise<RevokedToken>
  }
  readonly portalLinks: {
    /**
     * Make a link that opens the pages about a tenant or an endpoint, once
     *
     * Who opens it sees the log of what is sent there, sends again, and changes endpoints. The link opens one session within an hour; link and session end after `lastsMs`. It is revoked as a token is, by its id.
     *
     * Scope: tokens:write. Refused with not-found, conflict.
     */
    create(input?: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
    } & NewPortalLink, options?: CallOptions): Promise<PortalLink>
    /**
     * List links that were not opened, and sessions, without their secrets
     *
     * Scope: tokens:write.
     */
    list(input?: {
      /** Another tenant than the client's. */
      readonly tenant?: string | undefined
    }, options?: CallOptions): Promise<PortalLinkList>
  }
  readonly system: {
    /**
     * Show the state of the installation, and what to do about problems
     *
     * Scope: operator.
     */
    status(input?: {}, options?: CallOptions): Promise<Status>
    /**
     * List the workers, and which partitions each has
     *
     * Scope: operator.
     */
    workers(input?: {}, options?: CallOptions): Promise<Workers>
    /**
     * List the outboxes of databases, as their relays last reported them
     *
     * Scope: operator.
     */
    outboxes(input?: {}, options?: CallOptions): Promise<OutboxList>
    /**
     * List the tenants that have endpoints
     *
     * Scope: operator.
     */
    tenants(input?: {
      /** How many at most. (Default: 50) */
      readonly limit?: number | undefined
    }, options?: CallOptions): List<TenantList["tenants"][number], TenantList>
  }
  readonly health: {
    /** Show that the process answers, and whether it has a broker */
    health(input?: {}, options?: CallOptions): Promise<Health>
  }
}

/** How each operation is asked for. */
export const operations = {
  "events.publish": { method: "POST", path: "/v1/tenants/{tenant}/events", headers: ["idempotency-key"], hasBody: true },
  "events.publishRaw": { method: "POST", path: "/v1/tenants/{tenant}/raw-events/{type}", headers: ["idempotency-key"], hasBody: true, insteadOverNats: "publish the body to events.<tenant>.<type>" },
  "deliveries.event": { method: "GET", path: "/v1/tenants/{tenant}/events/{event}" },
  "deliveries.eventBody": { method: "GET", path: "/v1/tenants/{tenant}/events/{event}/body", isBytes: true },
  "deliveries.delivery": { method: "GET", path: "/v1/tenants/{tenant}/deliveries/{delivery}" },
  "deliveries.deliveryBody": { method: "GET", path: "/v1/tenants/{tenant}/deliveries/{delivery}/body", isBytes: true },
  "deliveries.totals": { method: "GET", path: "/v1/tenants/{tenant}/totals", query: ["by","since","until","limit"] },
  "deliveries.alerts": { method: "GET", path: "/v1/tenants/{tenant}/alerts", query: ["limit","cursor"], list: "alerts" },
  "deliveries.live": { method: "GET", path: "/v1/tenants/{tenant}/live", query: ["endpoint"], headers: ["last-event-id"], insteadOverNats: "subscribe to petrel.failures.<tenant>.>" },
  "log.list": { method: "GET", path: "/v1/tenants/{tenant}/deliveries", query: ["limit","cursor","endpoint","event","type","state","status","error","since","until"], list: "deliveries" },
  "log.attempts": { method: "GET", path: "/v1/tenants/{tenant}/attempts", query: ["limit","cursor","endpoint","event","type","outcome","status","error","since","until"], list: "attempts" },
  "log.events": { method: "GET", path: "/v1/tenants/{tenant}/events", query: ["limit","cursor","type","channel","since","until"], list: "events" },
  "log.stats": { method: "GET", path: "/v1/tenants/{tenant}/stats", query: ["since","until","by"] },
  "log.endpointStats": { method: "GET", path: "/v1/tenants/{tenant}/endpoints/{id}/stats", query: ["since","until","by"] },
  "log.projection": { method: "GET", path: "/v1/projection" },
  "attempts.test": { method: "POST", path: "/v1/tenants/{tenant}/endpoints/{id}/test", headers: ["idempotency-key"], hasBody: true },
  "attempts.retryNow": { method: "POST", path: "/v1/tenants/{tenant}/endpoints/{id}/retry-now", hasBody: true },
  "attempts.diagnose": { method: "GET", path: "/v1/tenants/{tenant}/endpoints/{id}/diagnosis" },
  "attempts.retryDelivery": { method: "POST", path: "/v1/tenants/{tenant}/deliveries/{delivery}/retry", hasBody: true },
  "attempts.resend": { method: "POST", path: "/v1/tenants/{tenant}/deliveries/{delivery}/resend", headers: ["idempotency-key"] },
  "deadLetters.list": { method: "GET", path: "/v1/tenants/{tenant}/dead-letters", query: ["limit","cursor","endpoint","reason","status","type","since","until","open"], list: "deadLetters" },
  "deadLetters.get": { method: "GET", path: "/v1/tenants/{tenant}/dead-letters/{number}" },
  "deadLetters.discard": { method: "DELETE", path: "/v1/tenants/{tenant}/dead-letters/{number}" },
  "jobs.redeliver": { method: "POST", path: "/v1/tenants/{tenant}/redeliveries", headers: ["idempotency-key"], hasBody: true },
  "jobs.listRedeliveries": { method: "GET", path: "/v1/tenants/{tenant}/redeliveries", query: ["limit","cursor"], list: "jobs" },
  "jobs.getRedelivery": { method: "GET", path: "/v1/tenants/{tenant}/redeliveries/{job}" },
  "jobs.cancelRedelivery": { method: "DELETE", path: "/v1/tenants/{tenant}/redeliveries/{job}" },
  "jobs.replay": { method: "POST", path: "/v1/tenants/{tenant}/replays", headers: ["idempotency-key"], hasBody: true },
  "jobs.listReplays": { method: "GET", path: "/v1/tenants/{tenant}/replays", query: ["limit","cursor"], list: "jobs" },
  "jobs.getReplay": { method: "GET", path: "/v1/tenants/{tenant}/replays/{job}" },
  "jobs.cancelReplay": { method: "DELETE", path: "/v1/tenants/{tenant}/replays/{job}" },
  "jobs.audit": { method: "POST", path: "/v1/audits", headers: ["idempotency-key"], hasBody: true },
  "jobs.listAudits": { method: "GET", path: "/v1/audits", query: ["limit","cursor"], list: "jobs" },
  "jobs.getAudit": { method: "GET", path: "/v1/audits/{job}" },
  "jobs.cancelAudit": { method: "DELETE", path: "/v1/audits/{job}" },
  "retries.retry": { method: "POST", path: "/v1/tenants/{tenant}/retries", headers: ["idempotency-key"], hasBody: true },
  "retries.listRetries": { method: "GET", path: "/v1/tenants/{tenant}/retries", query: ["limit","cursor"], list: "jobs" },
  "retries.getRetry": { method: "GET", path: "/v1/tenants/{tenant}/retries/{job}" },
  "retries.cancelRetry": { method: "DELETE", path: "/v1/tenants/{tenant}/retries/{job}" },
  "retries.recover": { method: "POST", path: "/v1/tenants/{tenant}/endpoints/{id}/recover", headers: ["idempotency-key"], hasBody: true },
  "retries.listRecoveries": { method: "GET", path: "/v1/tenants/{tenant}/recoveries", query: ["limit","cursor"], list: "jobs" },
  "retries.getRecovery": { method: "GET", path: "/v1/tenants/{tenant}/recoveries/{job}" },
  "retries.cancelRecovery": { method: "DELETE", path: "/v1/tenants/{tenant}/recoveries/{job}" },
  "endpoints.list": { method: "GET", path: "/v1/tenants/{tenant}/endpoints", query: ["limit","cursor","id","state","metadata"], list: "endpoints" },
  "endpoints.create": { method: "POST", path: "/v1/tenants/{tenant}/endpoints", headers: ["idempotency-key"], hasBody: true },
  "endpoints.get": { method: "GET", path: "/v1/tenants/{tenant}/endpoints/{id}", headers: ["if-none-match"] },
  "endpoints.history": { method: "GET", path: "/v1/tenants/{tenant}/endpoints/{id}/history", query: ["limit","cursor"], list: "changes" },
  "endpoints.retryPolicies": { method: "GET", path: "/v1/tenants/{tenant}/endpoints/{id}/retry-policies", query: ["type"] },
  "endpoints.put": { method: "PUT", path: "/v1/tenants/{tenant}/endpoints/{id}", headers: ["if-match","if-none-match"], hasBody: true },
  "endpoints.patch": { method: "PATCH", path: "/v1/tenants/{tenant}/endpoints/{id}", headers: ["if-match"], hasBody: true },
  "endpoints.remove": { method: "DELETE", path: "/v1/tenants/{tenant}/endpoints/{id}", headers: ["if-match"] },
  "endpoints.enable": { method: "POST", path: "/v1/tenants/{tenant}/endpoints/{id}/enable", headers: ["if-match"] },
  "endpoints.disable": { method: "POST", path: "/v1/tenants/{tenant}/endpoints/{id}/disable", headers: ["if-match"], hasBody: true },
  "endpoints.pause": { method: "POST", path: "/v1/tenants/{tenant}/endpoints/{id}/pause", headers: ["if-match"], hasBody: true },
  "endpoints.resume": { method: "POST", path: "/v1/tenants/{tenant}/endpoints/{id}/resume", headers: ["if-match"] },
  "endpoints.rotate": { method: "POST", path: "/v1/tenants/{tenant}/endpoints/{id}/rotate", headers: ["if-match"], hasBody: true },
  "endpoints.secret": { method: "GET", path: "/v1/tenants/{tenant}/endpoints/{id}/secret" },
  "sources.list": { method: "GET", path: "/v1/tenants/{tenant}/sources" },
  "sources.get": { method: "GET", path: "/v1/tenants/{tenant}/sources/{id}" },
  "sources.add": { method: "POST", path: "/v1/tenants/{tenant}/sources/{id}", hasBody: true },
  "sources.patch": { method: "PATCH", path: "/v1/tenants/{tenant}/sources/{id}", headers: ["if-match"], hasBody: true },
  "sources.rotate": { method: "POST", path: "/v1/tenants/{tenant}/sources/{id}/rotate", headers: ["if-match"], hasBody: true },
  "sources.remove": { method: "DELETE", path: "/v1/tenants/{tenant}/sources/{id}", headers: ["if-match"] },
  "quarantine.list": { method: "GET", path: "/v1/tenants/{tenant}/quarantine" },
  "quarantine.get": { method: "GET", path: "/v1/tenants/{tenant}/quarantine/{number}" },
  "quarantine.release": { method: "POST", path: "/v1/tenants/{tenant}/quarantine/{number}/release", hasBody: true },
  "quarantine.releaseSeveral": { method: "POST", path: "/v1/tenants/{tenant}/quarantine-release", hasBody: true },
  "quarantine.discard": { method: "DELETE", path: "/v1/tenants/{tenant}/quarantine/{number}" },
  "quarantine.discardSeveral": { method: "POST", path: "/v1/tenants/{tenant}/quarantine-discard", hasBody: true },
  "settings.tenant": { method: "GET", path: "/v1/tenants/{tenant}/settings" },
  "settings.changeTenant": { method: "PATCH", path: "/v1/tenants/{tenant}/settings", headers: ["if-match"], hasBody: true, insteadOverNats: "change them over HTTP" },
  "settings.thresholds": { method: "GET", path: "/v1/tenants/{tenant}/alert-thresholds" },
  "settings.setThresholds": { method: "PUT", path: "/v1/tenants/{tenant}/alert-thresholds", headers: ["if-match"], hasBody: true },
  "settings.presets": { method: "GET", path: "/v1/tenants/{tenant}/retry-presets" },
  "settings.system": { method: "GET", path: "/v1/settings" },
  "settings.changeSystem": { method: "PATCH", path: "/v1/settings", headers: ["if-match"], hasBody: true },
  "settings.systemThresholds": { method: "GET", path: "/v1/alert-thresholds" },
  "settings.setSystemThresholds": { method: "PUT", path: "/v1/alert-thresholds", headers: ["if-match"], hasBody: true },
  "tokens.create": { method: "POST", path: "/v1/tenants/{tenant}/tokens", headers: ["idempotency-key"], hasBody: true },
  "tokens.list": { method: "GET", path: "/v1/tenants/{tenant}/tokens" },
  "tokens.get": { method: "GET", path: "/v1/tenants/{tenant}/tokens/{token}" },
  "tokens.revoke": { method: "DELETE", path: "/v1/tenants/{tenant}/tokens/{token}" },
  "portalLinks.create": { method: "POST", path: "/v1/tenants/{tenant}/portal-links", hasBody: true },
  "portalLinks.list": { method: "GET", path: "/v1/tenants/{tenant}/portal-links" },
  "system.status": { method: "GET", path: "/v1/status" },
  "system.workers": { method: "GET", path: "/v1/workers" },
  "system.outboxes": { method: "GET", path: "/v1/outboxes" },
  "system.tenants": { method: "GET", path: "/v1/tenants", query: ["limit","cursor"], list: "tenants" },
  "health.health": { method: "GET", path: "/healthz", isOpen: true, insteadOverNats: "ask with `nats micro ping petrel`" }
} as const satisfies Readonly<Record<string, Described>>
