/*
 * What this process did in the last five minutes, against thresholds. Each process of an application tells of its
 * own; the store's figures (`stats`) are those of all.
 */

export type AlertName = "success-low" | "retries-high" | "permanent-high" | "slow"

export interface Alert {
  readonly name: AlertName
  readonly source: string
  /** False when it is over. */
  readonly isRaised: boolean
  /** A share from 0 to 1, or the median in ms. */
  readonly value: number
  readonly threshold: number
  /** A sentence for people. */
  readonly text: string
}

const windowMs = 300_000

/** Fewer results than this tell nothing: they raise no alert, and end those that are raised. */
const minResults = 20

/** One result: an answer to a request, or an attempt at work in the background. */
export interface Result {
  readonly at: number
  readonly isSuccess: boolean
  readonly isRetry: boolean
  readonly isPermanent: boolean
  readonly ms: number
}

const percent = (share: number): string => `${Math.round(share * 1_000) / 10}%`

const shares = (results: ReadonlyArray<Result>) => {
  const of = (test: (result: Result) => boolean) =>
    results.filter(test).length / Math.max(1, results.length)
  const times = results.map(({ ms }) => ms).sort((a, b) => a - b)
  return {
    success: of(({ isSuccess }) => isSuccess),
    retries: of(({ isRetry }) => isRetry),
    permanent: of(({ isPermanent }) => isPermanent),
    median: times[Math.floor(times.length / 2)] ?? 0
  }
}

/** The alerts of one state of the window. */
const judged = (source: string, results: ReadonlyArray<Result>): ReadonlyArray<Alert> => {
  const isTelling = results.length >= minResults
  const { median, permanent, retries, success } = shares(results)
  const one = (
    name: AlertName,
    isRaised: boolean,
    value: number,
    threshold: number,
    text: string
  ): Alert => ({
    name,
    source,
    isRaised: isTelling && isRaised,
    value,
    threshold,
    text: `${source}: ${text}`
  })
  return [
    one("success-low", success < 0.95, success, 0.95, `${percent(success)} succeed, less than 95%`),
    one(
      "retries-high",
      retries > 0.1,
      retries,
      0.1,
      `${percent(retries)} are tried again, more than 10%`
    ),
    one(
      "permanent-high",
      permanent > 0.01,
      permanent,
      0.01,
      `${percent(permanent)} fail for good, more than 1%`
    ),
    one(
      "slow",
      median > 5_000,
      median,
      5_000,
      `the median takes ${Math.round(median)} ms, more than 5 s`
    )
  ]
}

/** Most results that are remembered of one source: older ones are forgotten. */
const maxResults = 5_000

export interface Alerts {
  readonly add: (source: string, result: Result) => void
  /** Tells of the alerts that have changed. */
  readonly look: (now: number) => void
}

/** @param tell is called for each alert that is raised, or over. */
export const makeAlerts = (tell: (alert: Alert) => void): Alerts => {
  const windows = new Map<string, Array<Result>>()
  const raised = new Set<string>()
  let lastLook = Number.NEGATIVE_INFINITY

  const look = (now: number): void => {
    lastLook = now
    for (const [source, results] of windows) {
      const recent = results.filter(({ at }) => at > now - windowMs).slice(-maxResults)
      windows.set(source, recent)
      for (const alert of judged(source, recent)) {
        const name = `${source} ${alert.name}`
        if (alert.isRaised === raised.has(name)) continue
        if (alert.isRaised) raised.add(name)
        else raised.delete(name)
        tell(alert.isRaised ? alert : { ...alert, text: `${source}: ${alert.name} is over` })
      }
    }
  }

  return {
    look,
    add: (source, result) => {
      const results = windows.get(source) ?? []
      windows.set(source, results)
      results.push(result)
      // One look a second: each sorts what is in the window.
      if (result.at - lastLook >= 1_000) look(result.at)
    }
  }
}
