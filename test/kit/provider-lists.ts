/**
 * APIs of providers as their documents describe them: pages, cursors, credentials. Each lists
 * `count` events, a minute apart, the newest first unless the provider does otherwise.
 */
import { hoursMs } from "../../src/providers/kind.ts"
import type { ApiReply, AskedApi } from "./provider-api.ts"
import { stripeEvents } from "./provider-api.ts"

type Answer = (asked: AskedApi) => ApiReply

export interface ProviderLists {
  readonly key: string
  readonly webhook: string
  /** Of a source of this provider's: see `ProviderSettings`. */
  readonly settings: Readonly<Record<string, unknown>>
  /** The API, with events of these times (ms), in pages of `perPage` at most. */
  readonly api: (times: ReadonlyArray<number>, perPage: number) => Answer
  /** The id and the type of the event of a place. */
  readonly event: (place: number, at?: number) => readonly [id: string, type: string]
  /** Whether missing ones are fetched, or asked for. */
  readonly comes: "carried" | "asked"
  /** The types that the webhook gets, of those that are listed, where the API says it. */
  readonly subscribed?: ReadonlyArray<string>
}

const secrets = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]
const denied: ApiReply = { status: 401, json: { message: "bad credentials" } }
const nothing: ApiReply = { status: 404, json: { message: "not found" } }
const seconds = (ms: number) => Math.floor(ms / 1_000)
const iso = (ms: number) => new Date(ms).toISOString()

/** Slices a list by a number in a cursor. */
const sliced = <A>(all: ReadonlyArray<A>, cursor: string | null, perPage: number) => {
  const from = cursor === null ? 0 : Number(cursor)
  const until = from + perPage
  return { page: all.slice(from, until), next: until < all.length ? String(until) : undefined }
}

const githubApi = (times: ReadonlyArray<number>, perPage: number): Answer => {
  const path = "/repos/acme/shop/hooks/42/deliveries"
  return ({ headers, method, path: asked, query }) => {
    if (headers.authorization !== "Bearer ghp_1") return denied
    if (headers.accept !== "application/vnd.github+json") return { status: 415 }
    const [, one] = /\/deliveries\/(\d+)$/.exec(asked) ?? []
    if (method === "GET" && asked === path) {
      if (query.get("per_page") !== "100") return { status: 400 }
      const { next, page } = sliced(times, query.get("cursor"), perPage)
      return {
        headers:
          next === undefined
            ? {}
            : {
                link: `<https://api.github.com${path}?per_page=100&cursor=0>; rel="prev", <https://api.github.com${path}?per_page=100&cursor=${next}>; rel="next"`
              },
        json: page.map((at) => {
          const place = times.indexOf(at)
          return {
            ...{ id: 1_000 + place, guid: `guid-${place}`, delivered_at: iso(at) },
            ...{ redelivery: false, duration: 0.03, status: "OK", status_code: 502 },
            ...{ event: "issues", action: "opened", repository_id: 1 }
          }
        })
      }
    }
    if (method === "GET" && one !== undefined)
      return {
        json: {
          id: Number(one),
          request: {
            headers: {
              "X-GitHub-Delivery": `guid-${Number(one) - 1_000}`,
              "X-GitHub-Event": "issues",
              "X-Hub-Signature-256": "sha256=0",
              "content-type": "application/x-www-form-urlencoded"
            },
            payload: { action: "opened", repository: { full_name: "acme/shop" } }
          }
        }
      }
    return nothing
  }
}

const gitlabApi =
  (times: ReadonlyArray<number>, perPage: number): Answer =>
  ({ headers, method, path, query }) => {
    if (headers["private-token"] !== "glpat-1") return denied
    if (method === "POST" && /^\/projects\/42\/hooks\/7\/events\/\d+\/resend$/.test(path))
      return { status: 201, json: { response_status: 200 } }
    if (path !== "/projects/42/hooks/7/events") return nothing
    // A page of GitLab's is full, or the last.
    const size = Math.max(perPage, Number(query.get("per_page")))
    const page = Number(query.get("page"))
    const from = (page - 1) * size
    return {
      json: times.slice(from, from + size).map((at) => {
        const place = times.indexOf(at)
        return {
          ...{ id: 500 + place, url: "https://example.net/", trigger: "push_hooks" },
          request_headers: {
            "Content-Type": "application/json",
            "Idempotency-Key": `key-${place}`,
            "X-Gitlab-Event": "Push Hook",
            "X-Gitlab-Token": "[REDACTED]"
          },
          request_data: { object_kind: "push", project: { path_with_namespace: "acme/shop" } },
          response_headers: { Date: new Date(at).toUTCString() },
          ...{ response_body: "", response_status: "503" }
        }
      })
    }
  }

const squareApi =
  (times: ReadonlyArray<number>, perPage: number): Answer =>
  ({ body, headers, method, path }) => {
    if (headers.authorization !== "Bearer EAAA") return denied
    if (path === "/v2/webhooks/subscriptions/wbhk_1")
      return { json: { subscription: { id: "wbhk_1", event_types: ["payment.updated"] } } }
    if (method !== "POST" || path !== "/v2/events") return nothing
    const { cursor = null, limit, query } = JSON.parse(body)
    const { end_at, start_at } = query.filter.created_at
    const within = times.filter((at) => iso(at) >= start_at && iso(at) <= end_at)
    const { next, page } = sliced(within, cursor, Math.min(perPage, limit))
    if (page.length === 0) return { json: {} }
    return {
      json: {
        events: page.map((at) => {
          const place = times.indexOf(at)
          return {
            ...{ merchant_id: "M1", type: "payment.updated", event_id: `sq-${place}` },
            created_at: iso(at),
            data: { type: "payment", id: "p1" }
          }
        }),
        metadata: [],
        ...(next === undefined ? {} : { cursor: next })
      }
    }
  }

const paddleApi =
  (times: ReadonlyArray<number>, perPage: number): Answer =>
  ({ headers, path, query }) => {
    if (headers.authorization !== "Bearer pdl_1") return denied
    if (path === "/notification-settings/ntfset_1")
      return { json: { data: { subscribed_events: [{ name: "transaction.paid" }] } } }
    if (path !== "/events" || query.get("order_by") !== "id[DESC]") return nothing
    const { next, page } = sliced(times, query.get("after"), perPage)
    return {
      json: {
        data: page.map((at) => ({
          ...{ event_id: `evt_${times.indexOf(at)}`, event_type: "transaction.paid" },
          occurred_at: iso(at),
          data: { id: "txn_1", customer_id: "ctm_1" }
        })),
        meta: {
          pagination: {
            ...{ per_page: 200, has_more: next !== undefined, estimated_total: times.length },
            next: `https://api.paddle.com/events?after=${next ?? times.length}&order_by=id[DESC]&per_page=200`
          }
        }
      }
    }
  }

const paypalApi = (times: ReadonlyArray<number>, perPage: number): Answer => {
  // Each token is good for three requests.
  let left = 0
  return ({ body, headers, path, query }) => {
    if (path === "/v1/oauth2/token") {
      const login = `Basic ${Buffer.from("client:secret").toString("base64")}`
      if (headers.authorization !== login || body !== "grant_type=client_credentials") return denied
      left = 3
      return { json: { access_token: "A21AA", token_type: "Bearer", expires_in: 32_400 } }
    }
    if (headers.authorization !== "Bearer A21AA" || left-- <= 0) return denied
    if (path === "/v1/notifications/webhooks/WH1")
      return { json: { id: "WH1", event_types: [{ name: "*" }] } }
    if (path !== "/v1/notifications/webhooks-events") return nothing
    const [start, end] = [query.get("start_time") ?? "", query.get("end_time") ?? ""]
    const within = times.filter((at) => iso(at) >= start && iso(at) <= end)
    const { next, page } = sliced(within, query.get("offset"), perPage)
    const self = `https://api.paypal.com${path}`
    return {
      json: {
        events: page.map((at) => ({
          ...{ id: `WH-${times.indexOf(at)}`, event_type: "PAYMENT.SALE.COMPLETED" },
          ...{ create_time: iso(at), resource: { id: "S1" }, event_version: "1.0" }
        })),
        count: page.length,
        links: [
          { href: self, rel: "self", method: "GET" },
          ...(next === undefined
            ? []
            : [
                {
                  href: `${self}?start_time=${start}&end_time=${end}&offset=${next}`,
                  rel: "next",
                  method: "GET"
                }
              ])
        ]
      }
    }
  }
}

const mailgunApi = (times: ReadonlyArray<number>, perPage: number): Answer => {
  let oldestFirst = times.toReversed()
  return ({ headers, path, query }) => {
    if (headers.authorization !== `Basic ${Buffer.from("api:key-1").toString("base64")}`)
      return denied
    const [, page] = /^\/v3\/mg\.example\.com\/events(?:\/(.+))?$/.exec(path) ?? [undefined, ""]
    if (!path.startsWith("/v3/mg.example.com/events")) return nothing
    if (page === undefined && query.get("ascending") !== "yes") return { status: 400 }
    if (page === undefined)
      oldestFirst = times
        .toReversed()
        .filter(
          (at) => at >= 1_000 * Number(query.get("begin")) && at <= 1_000 * Number(query.get("end"))
        )
    const from = page === undefined ? 0 : Number(page.replace("=", ""))
    const next = Math.min(from + perPage, oldestFirst.length)
    return {
      json: {
        items: oldestFirst.slice(from, next).map((at) => ({
          ...{ id: `mg-${times.indexOf(at)}`, event: "delivered", timestamp: at / 1_000 },
          message: { headers: { "message-id": "20240101.1@mg.example.com" } }
        })),
        // There is always a next page; at the end it is empty.
        paging: { next: `https://api.mailgun.net/v3/mg.example.com/events/${next}=` }
      }
    }
  }
}

const svixApi =
  (times: ReadonlyArray<number>, perPage: number): Answer =>
  ({ headers, method, path, query }) => {
    if (headers.authorization !== "Bearer testsk_1") return denied
    if (method === "POST") return { status: 202, json: {} }
    if (path !== "/api/v1/app/app_1/endpoint/ep_1/msg") return nothing
    if (query.has("before") && query.has("after")) return { status: 422 }
    const before = query.get("before")
    const within = before === null ? times : times.filter((at) => iso(at) <= before)
    const { next, page } = sliced(within, query.get("iterator"), perPage)
    return {
      json: {
        data: page.map((at) => ({
          ...{ id: `msg_${times.indexOf(at)}`, eventType: "invoice.paid", timestamp: iso(at) },
          ...{ payload: { type: "invoice.paid", data: {} }, status: 2, channels: null }
        })),
        ...{ done: next === undefined, iterator: next ?? "end", prevIterator: null }
      }
    }
  }

const petrelApi =
  (times: ReadonlyArray<number>, perPage: number): Answer =>
  ({ headers, method, path, query }) => {
    if (headers.authorization !== "Bearer petrel_1") return denied
    if (
      method === "POST" &&
      /^\/v1\/tenants\/acme\/deliveries\/acme\.[\d]+\.hook\/resend$/.test(path)
    )
      return { status: 200, json: {} }
    if (path !== "/v1/tenants/acme/deliveries" || query.get("endpoint") !== "hook") return nothing
    if (query.getAll("state").join() !== "delivered,dead-lettered") return { status: 400 }
    const within = times.filter((at) => iso(at) >= (query.get("since") ?? ""))
    const { next, page } = sliced(within, query.get("cursor"), perPage)
    return {
      json: {
        deliveries: page.map((at) => ({
          ...{ delivery: `acme.${times.indexOf(at)}.hook`, event: `acme.${times.indexOf(at)}` },
          ...{ eventAt: iso(at), type: "invoice.paid", state: "dead-lettered" }
        })),
        ...(next === undefined ? {} : { next }),
        searchedUntil: null
      }
    }
  }

const shopifyApi =
  (times: ReadonlyArray<number>, perPage: number): Answer =>
  ({ headers, path, query }) => {
    if (headers["x-shopify-access-token"] !== "shpat_1") return denied
    if (path !== "/orders.json") return nothing
    const cursor = query.get("page_info")
    // A page that is named by page_info takes no filters beside the limit.
    if (cursor !== null && query.has("updated_at_min")) return { status: 400 }
    const [min, max] = (cursor ?? `0/${query.get("updated_at_min")}/${query.get("updated_at_max")}`)
      .split("/")
      .slice(1)
    const within = times.filter((at) => iso(at) >= (min ?? "") && iso(at) <= (max ?? ""))
    const { next, page } = sliced(within, cursor?.split("/")[0] ?? null, perPage)
    const info = encodeURIComponent(`${next}/${min}/${max}`)
    const link = `<https://acme.myshopify.com/admin/api/2025-07/orders.json?limit=250&page_info=${info}>; rel="next"`
    return {
      headers: next === undefined ? {} : { link },
      json: {
        orders: page.map((at) => ({
          id: 9_000 + times.indexOf(at),
          updated_at: iso(at),
          name: "#1"
        }))
      }
    }
  }

export const providerLists: Readonly<Record<string, ProviderLists>> = {
  stripe: {
    ...{ key: "sk_test_1", webhook: "", settings: { secrets: ["whsec_1"] } },
    api: (times, perPage) =>
      stripeEvents(
        times.map((at, place) => ({
          ...{ id: `evt_${place}`, created: seconds(at), type: "invoice.paid" },
          data: { object: { id: "in_1" } }
        })),
        perPage
      ),
    event: (place) => [`evt_${place}`, "invoice.paid"],
    comes: "carried"
  },
  github: {
    ...{ key: "ghp_1", webhook: "repos/acme/shop/hooks/42", settings: { secrets } },
    api: githubApi,
    event: (place) => [`guid-${place}`, "issues.opened"],
    comes: "carried"
  },
  gitlab: {
    ...{ key: "glpat-1", webhook: "projects/42/hooks/7", settings: { secrets: ["t0ken"] } },
    api: gitlabApi,
    event: (place) => [`key-${place}`, "push"],
    comes: "carried"
  },
  square: {
    ...{ key: "EAAA", webhook: "wbhk_1" },
    settings: { secrets, publicUrl: "https://hooks.example.com/in" },
    api: squareApi,
    event: (place) => [`sq-${place}`, "payment.updated"],
    comes: "carried",
    subscribed: ["payment.updated"]
  },
  paddle: {
    ...{ key: "pdl_1", webhook: "ntfset_1", settings: { secrets: ["pdl_ntfset_1"] } },
    api: paddleApi,
    event: (place) => [`evt_${place}`, "transaction.paid"],
    comes: "carried",
    subscribed: ["transaction.paid"]
  },
  paypal: {
    ...{ key: "client:secret", webhook: "WH1" },
    settings: { webhookId: "WH1", certificate: () => Promise.reject(new Error("none")) },
    api: paypalApi,
    event: (place) => [`WH-${place}`, "PAYMENT.SALE.COMPLETED"],
    comes: "carried",
    subscribed: ["*"]
  },
  mailgun: {
    ...{ key: "key-1", webhook: "mg.example.com", settings: { secrets } },
    api: mailgunApi,
    event: (place) => [`mg-${place}`, "delivered"],
    comes: "carried"
  },
  shopify: {
    ...{ key: "shpat_1", webhook: "orders", settings: { secrets } },
    api: shopifyApi,
    event: (place, at = 0) => [
      `orders-${9_000 + place}-${new Date(at).toISOString()}`,
      "orders/updated"
    ],
    comes: "carried"
  },
  "standard-webhooks": {
    ...{ key: "testsk_1", webhook: "app/app_1/endpoint/ep_1", settings: { secrets } },
    api: svixApi,
    event: (place) => [`msg_${place}`, "invoice.paid"],
    comes: "carried"
  },
  petrel: {
    ...{ key: "petrel_1", webhook: "acme/hook", settings: { secrets } },
    api: petrelApi,
    event: (place) => [`acme.${place}`, "invoice.paid"],
    comes: "asked"
  }
}

/** Times of so many events, a minute apart, the newest first. */
export const timesBefore = (now: number, count: number): ReadonlyArray<number> =>
  Array.from({ length: count }, (_, place) => now - hoursMs(1) - place * 60_000)
