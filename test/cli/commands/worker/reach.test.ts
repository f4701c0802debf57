import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { readReach } from "../../../../src/cli/commands/worker/worker.ts"
import type { Reach } from "../../../../src/policy/address.ts"

const shown = ({ networks, ports }: Reach) => [networks.map(String), ports]

describe("--allow-network and --allow-port", () => {
  it("are for all tenants, or for the one that is named", () => {
    const { everyone, tenants } = Result.getOrThrow(
      readReach(
        ["10.1.0.0/16", "acme=10.0.0.0/8", "fd00::/8", "acme=::1"],
        ["8443", "acme=any", "globex=8080", "globex=8081"]
      )
    )
    assert.deepStrictEqual(shown(everyone), [["10.1.0.0/16", "fd00::/8"], [8443]])
    assert.deepStrictEqual(
      [...tenants].map(([tenant, reach]) => [tenant, ...shown(reach)]),
      [
        ["acme", ["10.0.0.0/8", "::1/128"], "any"],
        ["globex", [], [8080, 8081]]
      ]
    )
  })

  it.each(["0", "65536", "-1", "80.5", "0x50", "", " 80", "all"])(
    "do not take %j for a port",
    (text) => {
      assert.deepStrictEqual(
        readReach([], [text]),
        Result.fail([`--allow-port ${JSON.stringify(text)} must be a port from 1 to 65535, or any`])
      )
    }
  )

  it.each(["=10.0.0.0/8", "a.b=10.0.0.0/8", "*=10.0.0.0/8"])(
    "do not take the tenant of %j",
    (text) => {
      const [problem = ""] = Result.getOrThrow(Result.flip(readReach([text], [])))
      assert.match(problem, /^--allow-network ".*" must name a tenant before the =/)
    }
  )
})
