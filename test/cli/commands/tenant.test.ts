import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { nth } from "../../kit/engine.ts"
import { installations, parse } from "../command-line.ts"
import { run } from "../in-process.ts"

const place = installations()

describe("petrel tenant", () => {
  it.live("sets and shows what holds for a tenant and the system", () => {
    const { flags, run: installed } = place()
    const petrel = (...args: ReadonlyArray<string>) => run("tenant", ...args, ...flags)
    return installed(
      Effect.gen(function* () {
        const set = yield* petrel(
          ...["set", "acme", "--host-cap", "20", "--forward-header", "X-Correlation-Id"]
        )
        assert.deepStrictEqual(set.out, ["acme is changed: host-cap, forward-headers"])
        const again = yield* petrel("set", "acme", "--host-cap", "20")
        assert.match(nth(again.out, 0), /^acme is unchanged/)
        yield* petrel("set", "--system", "--host-cap", "100")
        const shown = yield* petrel("show", "acme")
        assert.deepStrictEqual(shown.out, [
          "acme",
          "  host cap          20 at the same time to one host, over all endpoints of acme",
          "                    and 100 at the same time to one host, over all endpoints of all tenants",
          "  longest time-out  5 min (the default)",
          "  max endpoints     1,000 (the default)",
          "  max tokens        1,000 (the default)",
          "  forwards headers  x-correlation-id"
        ])
        yield* petrel("set", "--system", "--max-tokens", "50")
        yield* petrel("set", "acme", "--max-endpoints", "2000")
        assert.includeMembers((yield* petrel("show", "acme")).out, [
          "  max endpoints     2,000",
          "  max tokens        50 (the system's)"
        ])
        yield* petrel("set", "--system", "--max-timeout", "10m")
        assert.include(
          (yield* petrel("show", "acme")).out,
          "  longest time-out  10 minutes (the system's)"
        )
        yield* petrel("set", "acme", "--max-timeout", "90s")
        assert.include((yield* petrel("show", "acme")).out, "  longest time-out  90 seconds")
        const tooLong = yield* petrel("set", "acme", "--max-timeout", "25h")
        assert.deepStrictEqual(tooLong.err, [
          'petrel: --max-timeout "25 hours" must be a length of time between 1 second and 24 hours, such as "15 minutes"'
        ])
        yield* run(
          ...["endpoint", "add", "acme/hook", "--url", "https://H.example:8443/x", ...flags],
          ...["--forward-header", "X-Own"]
        )
        const hook = yield* run("endpoint", "show", "acme/hook", ...flags)
        for (const row of [
          "  host cap    20 at the same time to h.example, of all endpoints of acme",
          "  host cap    100 at the same time to h.example, of all endpoints of all tenants",
          "  forwards    x-correlation-id, x-own"
        ])
          assert.include(hook.out, row)
        const detail = parse(
          nth((yield* run("endpoint", "show", "acme/hook", "--json", ...flags)).out, 0)
        )
        assert.deepInclude(detail, {
          forwardHeaders: ["x-own"],
          forwards: ["x-correlation-id", "x-own"],
          sharedHost: { host: "h.example", tenantCap: 20, systemCap: 100 }
        })
        const json = parse(nth((yield* petrel("show", "--system", "--json")).out, 0))
        assert.deepInclude(json, { hostCap: 100, forwardHeaders: [] })
        yield* petrel("set", "acme", "--no-host-cap", "--no-forward-header", "x-correlation-id")
        const less = parse(nth((yield* petrel("show", "acme", "--json")).out, 0))
        assert.notProperty(less, "hostCap")
        assert.deepStrictEqual(less.forwardHeaders, [])
      })
    )
  })

  it.live.each([
    [["show"], "say whose settings: a tenant such as acme, or --system"],
    [["set", "acme", "--system", "--host-cap", "3"], "a tenant and --system cannot be combined"],
    [
      ["set", "acme"],
      "nothing to change: name a setting, such as --host-cap 20; see `petrel tenant set --help`"
    ],
    [["set", "acme", "--host-cap", "0"], "--host-cap 0 must be between 1 and 100000"],
    [["set", "acme", "--host-cap", "x"], '--host-cap "x" must be a whole number'],
    [
      ["set", "acme", "--host-cap", "3", "--no-host-cap"],
      "--host-cap and --no-host-cap cannot be combined"
    ],
    [
      ["set", "acme", "--forward-header", "webhook-id", "--forward-header", "a b"],
      '--forward-header "webhook-id" is a header that Petrel or HTTP sets itself; --forward-header "a b" must be a valid header name such as x-tenant'
    ],
    [
      ["set", "acme", "--forward-header", "X-A", "--no-forward-header", "x-a"],
      '--forward-header and --no-forward-header cannot be combined: both name "x-a"'
    ]
  ] as const)("refuses %j in a sentence", ([args, sentence]) =>
    Effect.gen(function* () {
      const refused = yield* run("tenant", ...args)
      assert.strictEqual(refused.code, 2)
      assert.deepStrictEqual(refused.err, [`petrel: ${sentence}`])
    })
  )
})
