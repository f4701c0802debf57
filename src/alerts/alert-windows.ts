import type { AlertChoice } from "../domain/alert.ts"
import type { Delivery, Progress } from "../domain/delivery.ts"
import { endpointKey } from "../domain/endpoint.ts"
import type { AttemptOutcome } from "../domain/outcome.ts"
import { isOwnType } from "../domain/type-filter.ts"
import type { LiveEndpoint } from "../endpoints/live-endpoint.ts"
import { AlertWindow } from "../policy/alert-window.ts"
import type { AnswersInARow } from "../policy/status-limit.ts"
import type { Thresholds } from "./thresholds.ts"

/** Interval between removals of expired pages, ms. */
const tidyPause = 60_000

/** Counters of an endpoint that had attempts or dead letters within its window. */
interface AlertPage {
  readonly generation: string
  readonly window: AlertWindow
  /** True if something was counted since the last look. */
  touched: boolean
  /** Failed attempts since the last success. */
  failuresInRow: number
  /** The last answers in a row that a rule of a policy holds for; undefined if the last was none. */
  row: AnswersInARow | undefined
  /** Of the last failure. */
  lastStatus: number | undefined
  lastError: string | undefined
}

/** Recent outcomes in one partition, by endpoint and by tenant, from which alerts are judged. */
export class AlertWindows {
  readonly #thresholds: Thresholds
  readonly #pages = new Map<string, AlertPage>()
  readonly #tenants = new Map<string, AlertWindow>()
  #touched: Array<string> = []
  #tidyAt = 0

  constructor(thresholds: Thresholds) {
    this.#thresholds = thresholds
  }

  /** @param progress the delivery's progress before this attempt. */
  answered(
    { config, key }: Pick<LiveEndpoint, "config" | "key">,
    { began, tenant, type }: Pick<Delivery, "began" | "tenant" | "type">,
    { at, result, rule, verdict }: Pick<AttemptOutcome, "at" | "result" | "rule" | "verdict">,
    { attempts, firstAttemptAt: firstAt }: Pick<Progress, "attempts" | "firstAttemptAt">
  ): void {
    const page = this.#pageOf(key, config.generation, tenant, config.alerts)
    this.#touch(key, page)
    const made = { verdict, attempt: attempts + 1, at, firstAt }
    page.window.attempt({ ...made, took: Math.max(0, at - began) })
    const inRow = page.row !== undefined && page.row.status === rule?.status ? page.row.count : 0
    page.row = rule === undefined ? undefined : { ...rule, count: inRow + 1 }
    if (verdict === "delivered") page.failuresInRow = 0
    else {
      page.failuresInRow++
      page.lastStatus = result.status
      page.lastError = result.error?.message
    }
    // The delivery of an alert's own event must not raise another alert.
    if (!isOwnType(type)) this.#tenantOf(tenant).attempt(made)
  }

  /** Counts a delivery that was dead-lettered at a time (ms since the epoch), with its progress. */
  onDeadLettered(
    delivery: Pick<Delivery, "endpoint" | "generation" | "tenant" | "type">,
    { firstAttemptAt }: Pick<Progress, "firstAttemptAt">,
    at: number,
    choice: AlertChoice | undefined
  ): void {
    const { endpoint, generation, tenant, type } = delivery
    const key = endpointKey(tenant, endpoint)
    const page = this.#pageOf(key, generation, tenant, choice)
    this.#touch(key, page)
    page.window.dead(at, firstAttemptAt)
    if (!isOwnType(type)) this.#tenantOf(tenant).dead(at, firstAttemptAt)
  }

  page(key: string): AlertPage | undefined {
    return this.#pages.get(key)
  }

  /** Forgets an endpoint that was removed. */
  forget(key: string): void {
    this.#pages.delete(key)
  }

  tenant(name: string): AlertWindow | undefined {
    return this.#tenants.get(name)
  }

  /** Tenants that had attempts or dead letters. */
  tenants(): Iterable<string> {
    return this.#tenants.keys()
  }

  /** Returns the keys of endpoints that were touched since the last call. */
  takeTouched(at: number): ReadonlyArray<string> {
    if (at >= this.#tidyAt) this.#tidy(at)
    const touched = this.#touched
    this.#touched = []
    for (const key of touched) {
      const page = this.#pages.get(key)
      if (page !== undefined) page.touched = false
    }
    return touched
  }

  #touch(key: string, page: AlertPage): void {
    if (page.touched) return
    page.touched = true
    this.#touched.push(key)
  }

  #pageOf(
    key: string,
    generation: string,
    tenant: string,
    choice: AlertChoice | undefined
  ): AlertPage {
    const known = this.#pages.get(key)
    const over = this.#thresholds.endpoint(tenant, choice).window
    // An endpoint that was created again under the same name starts from zero.
    if (known?.generation === generation && known.window.over === over) return known
    const page: AlertPage = {
      generation,
      window: new AlertWindow(over),
      touched: known?.touched ?? false,
      failuresInRow: 0,
      row: undefined,
      lastStatus: undefined,
      lastError: undefined
    }
    this.#pages.set(key, page)
    return page
  }

  #tenantOf(tenant: string): AlertWindow {
    const known = this.#tenants.get(tenant)
    const over = this.#thresholds.tenant(tenant).window
    if (known?.over === over) return known
    const window = new AlertWindow(over)
    this.#tenants.set(tenant, window)
    return window
  }

  #tidy(at: number): void {
    this.#tidyAt = at + tidyPause
    // Answers and failures in a row may be further apart than a window.
    for (const [key, { failuresInRow, row, touched, window }] of this.#pages)
      if (!touched && row === undefined && failuresInRow === 0 && window.isOver(at))
        this.#pages.delete(key)
    for (const [tenant, window] of this.#tenants)
      if (window.isOver(at)) this.#tenants.delete(tenant)
  }
}
