import { HistogramCells } from "../metrics/cells.ts"
import type { HistogramFamily } from "../metrics/family.ts"

/**
 * Upper bounds, ms: of the 14 that OpenTelemetry recommends for requests to a server, 8. Each route has
 * a series for each of them and each status, and a scrape with all of them has 206 KB.
 */
const boundsMs = [5, 10, 25, 50, 100, 250, 1_000, 5_000]

/** Shown as the route of requests that match none. */
const noRoute = "none"

/** What is told of a request that was answered. */
interface AnsweredRequest {
  readonly method: string
  /** The path with placeholders; undefined where there is no such route. */
  readonly route: string | undefined
  readonly status: number
  readonly ms: number
}

/**
 * How long requests to the API took, by method, route and status. Methods of unknown routes are told
 * as one, so that there are no more series than routes times statuses.
 */
export class RequestDurations {
  readonly #cells = new Map<string, HistogramCells>()

  note({ method, ms, route = noRoute, status }: AnsweredRequest): void {
    const verb = route === noRoute ? "_OTHER" : method
    const key = `${verb} ${route} ${status}`
    const known = this.#cells.get(key)
    const cells =
      known ??
      new HistogramCells(
        {
          http_request_method: verb,
          http_route: route,
          http_response_status_code: String(status)
        },
        boundsMs,
        0.001
      )
    if (known === undefined) this.#cells.set(key, cells)
    cells.observe(ms)
  }

  family(): HistogramFamily {
    return {
      name: "http.server.request.duration",
      help: "Duration of requests to the HTTP API.",
      type: "histogram",
      unit: "s",
      samples: [...this.#cells.values()].flatMap((cells) => cells.samples(true))
    }
  }
}
