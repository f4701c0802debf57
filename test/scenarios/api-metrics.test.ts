import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { runAudit } from "../../src/operations/audit/run-audit.ts"
import { startConsole } from "../kit/console.ts"
import { endpoint, eventually, publishMany, worker } from "../kit/engine.ts"
import { promtool, withoutPrometheus } from "../kit/prometheus.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

describe.concurrent("the console's /metrics", () => {
  scenario("tells of the whole installation", () =>
    Effect.gen(function* () {
      const refuses = yield* receiver({ answer: { status: 400 } })
      yield* endpoint({ url: refuses.url })
      yield* worker()
      yield* publishMany(3)
      const { ask, token } = yield* startConsole()
      yield* runAudit({})
      const { headers, text } = yield* eventually(ask("/metrics"), ({ text }) =>
        text.includes("\npetrel_dead_letters 3\n")
      )
      assert.include(headers.get("content-type") ?? "", "version=0.0.4")
      assert.include(text, 'petrel_endpoints{state="closed"} 1\n')
      yield* ask("/v1/tenants/acme/endpoints/none")
      yield* ask("/v1/nothing/of/this/kind")
      const made = { method: "POST", token: yield* token(), body: { type: "made", data: {} } }
      assert.strictEqual((yield* ask("/v1/tenants/acme/events", made)).status, 201)
      const later = yield* eventually(ask("/metrics"), (answer) =>
        answer.text.includes('http_route="none"')
      )
      const counted = (labels: string) =>
        assert.include(later.text, `http_server_request_duration_seconds_count{${labels}} 1\n`)
      counted(
        'http_request_method="GET",http_route="/v1/tenants/{tenant}/endpoints/{id}",http_response_status_code="401"'
      )
      counted('http_request_method="_OTHER",http_route="none",http_response_status_code="404"')
      counted(
        'http_request_method="POST",http_route="/v1/tenants/{tenant}/events",http_response_status_code="201"'
      )
      assert.include(text, "\npetrel_workers 1\n")
      assert.include(text, "\npetrel_audit_problems 0\n")
      assert.include(text, 'petrel_partitions{state="owned"} 2\n')
      if (withoutPrometheus === undefined)
        assert.deepStrictEqual(promtool(["check", "metrics"], text), { code: 0, text: "" })
    })
  )

  scenario("asks for an operator's token where others than this machine can ask", () =>
    Effect.gen(function* () {
      const publicUrl = "http://hooks.example"
      const { ask, token } = yield* startConsole({ publicUrl })
      const refused = yield* ask("/metrics")
      assert.strictEqual(refused.status, 401)
      assert.strictEqual(refused.headers.get("www-authenticate"), 'Bearer realm="petrel"')
      const statusWith = (given: string) =>
        Effect.map(ask("/metrics", { token: given }), ({ status }) => status)
      assert.strictEqual(yield* statusWith("ptl_no_such"), 401)
      assert.strictEqual(yield* statusWith(yield* token()), 401)
      const operator = yield* token({ tenant: "*", scopes: ["operator"] })
      assert.strictEqual(yield* eventually(statusWith(operator), (status) => status !== 401), 200)
    })
  )
})
