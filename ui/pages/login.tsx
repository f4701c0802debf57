import { useEffect, useState } from "preact/hooks"
import { go } from "../router.ts"
import { logIn } from "../session.ts"

/** Logs in with a link, whose secret is behind the #, or with a token. */
export const Login = () => {
  const [token, setToken] = useState("")
  const [problem, setProblem] = useState<string>()
  const [isLink] = useState(location.hash.startsWith("#ptl_"))
  const open = async (given: string) => {
    const refusal = await logIn(given).catch(() => "the console does not answer: try again")
    setProblem(refusal)
    if (refusal === undefined && location.pathname === "/ui/login") go("/ui/", true)
  }
  useEffect(() => {
    if (!isLink) return
    const given = location.hash.slice(1)
    // It is used up by this: nobody should find it in the browser's history.
    history.replaceState(null, "", "/ui/login")
    void open(given)
  }, [])
  return (
    <main class="login">
      <form
        class="card"
        onSubmit={(event) => {
          event.preventDefault()
          void open(token)
        }}
      >
        <h1>Petrel</h1>
        {isLink && problem === undefined ? (
          <p aria-busy="true">Logging in…</p>
        ) : (
          <>
            {problem !== undefined && (
              <p class="bad" role="alert">
                Not logged in: {problem}
              </p>
            )}
            <p>
              Open a link of <code>petrel login</code>, or log in with a token of the API.
            </p>
            <label>
              Token
              <input
                type="password"
                autocomplete="off"
                value={token}
                onInput={(event) => setToken(event.currentTarget.value)}
              />
            </label>
            <button type="submit" class="main">
              Log in
            </button>
          </>
        )}
      </form>
    </main>
  )
}
