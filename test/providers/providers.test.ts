import { assert, describe, it } from "@effect/vitest"
import { provider, providers } from "../../src/providers/providers.ts"
import { InvalidProviderSettings, type ProviderSettings } from "../../src/providers/settings.ts"
import { samples } from "./samples.ts"

const problemsOf = (name: string, settings: ProviderSettings): ReadonlyArray<string> => {
  const problems = providers.get(name)?.problems(settings) ?? []
  try {
    provider(name, settings)
    assert.deepStrictEqual(problems, [])
    return []
  } catch (error) {
    if (!(error instanceof InvalidProviderSettings)) throw error
    if (providers.has(name)) assert.deepStrictEqual(error.problems, problems)
    return error.problems
  }
}

describe("providers", () => {
  it("are all tested, by their names", () => {
    assert.sameMembers([...new Set(samples.map(({ name }) => name))], [...providers.keys()])
    for (const { keys, make, name } of samples)
      assert.strictEqual(make([keys[0].verifying]).name, name)
  })

  it("say what they lack, and what they have no use for", () => {
    assert.deepStrictEqual(problemsOf("stripe", {}), [
      "`secrets` is missing: the endpoint's signing secrets, whsec_…"
    ])
    assert.deepStrictEqual(problemsOf("github", { secrets: ["x"], toleranceMs: 1_000 }), [
      "`toleranceMs` is not used by GitHub: leave it out"
    ])
    assert.match(problemsOf("nobody", {})[0] ?? "", /there are petrel, standard-webhooks, stripe/)
    const settings = { secrets: ["x"], toleranceMs: 0 }
    assert.match(problemsOf("slack", settings)[0] ?? "", /^`toleranceMs` must be above 0/)
  })

  it("refuse what cannot be a secret of theirs, without showing it", () => {
    const bad: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
      ["stripe", ["sk_live_1"]],
      ["stripe", []],
      ["stripe", [""]],
      ["stripe", Array.from({ length: 11 }, (_, n) => `whsec_${n}`)],
      ["standard-webhooks", ["whsec_no base64"]],
      ["standard-webhooks", [`whpk_${Buffer.alloc(31, 1).toString("base64")}`]],
      ["petrel", [`whsk_${Buffer.alloc(32, 1).toString("base64")}`]]
    ]
    for (const [name, secrets] of bad) {
      const problems = problemsOf(name, { secrets })
      assert.lengthOf(problems, 1, name)
      for (const secret of secrets) if (secret !== "") assert.notInclude(problems[0], secret)
    }
  })

  it("check the description of a generic HMAC", () => {
    const of = (scheme: object) =>
      problemsOf("hmac", { secrets: ["x"], scheme: scheme as { header: string } }).join("; ")
    const good = { header: "x-signature" }
    assert.strictEqual(of(good), "")
    assert.match(of({}), /name of a header in lower case in its "header"/)
    assert.match(of({ ...good, header: "X-Signature" }), /lower case/)
    assert.match(of({ ...good, algorithm: "md5" }), /one of sha1, sha256, sha512/)
    assert.match(of({ ...good, colour: "red" }), /"colour", which is unknown/)
    assert.match(of({ ...good, signed: "{timestamp}" }), /\{body\} once/)
    assert.match(of({ ...good, signed: "{body}{body}" }), /\{body\} once/)
    assert.match(of({ ...good, signed: "{timestamp}{body}" }), /"timestampHeader", or neither/)
    assert.match(of({ ...good, timestampHeader: "x-time" }), /"timestampHeader", or neither/)
    assert.match(of({ ...good, signed: "{id}{body}", id: "body:id" }), /which header \{id\}/)
    assert.match(of({ ...good, type: "type" }), /header:NAME in lower case or body:PATH/)
    assert.match(of({ ...good, signed: "{url}{body}" }), /`publicUrl` is missing/)
    assert.match(of({ ...good, secretEncoding: "hex" }), /`secrets` must be in hex/)
  })
})
