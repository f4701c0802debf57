import { useEffect, useState } from "preact/hooks"
import { go } from "../router.ts"
import { logIn, unknownBecause } from "../session.ts"

/** Returns the secret of a link that is opened, behind the #. */
const linkOpened = (): string | undefined =>
  location.hash.startsWith("#ptl_") ? location.hash.slice(1) : undefined

/** Logs in with a link, whose secret is behind the #, or with a token. */
export const Login = () => {
  const [token, setToken] = useState("")
  const [problem, setProblem] = useState(unknownBecause.peek())
  // Kept for as long as nobody knows whether it is used up.
  const [link, setLink] = useState(linkOpened)
  const open = async (given: string) => {
    setProblem(undefined)
    try {
      const refusal = await logIn(given)
      setLink(undefined)
      setProblem(refusal)
      if (refusal === undefined && location.pathname === "/ui/login") go("/ui/", true)
    } catch (error) {
      // What fetch rejects with is for programs.
      setProblem(
        error instanceof TypeError || !(error instanceof Error)
          ? "the console does not answer: try again"
          : error.message
      )
    }
  }
  useEffect(() => {
    const follow = () => {
      const given = linkOpened()
      if (given === undefined) return
      // It is used up by this: nobody should find it in the browser's history.
      history.replaceState(null, "", "/ui/login")
      setLink(given)
      void open(given)
    }
    follow()
    // A link that is opened where this page is shown changes what is behind the #, and loads nothing.
    addEventListener("hashchange", follow)
    return () => removeEventListener("hashchange", follow)
  }, [])
  return (
    <main class="login">
      <form
        class="card"
        onSubmit={(event) => {
          event.preventDefault()
          setLink(undefined)
          void open(token)
        }}
      >
        <h1>Petrel</h1>
        {link !== undefined && problem === undefined ? (
          <p aria-busy="true">Logging in…</p>
        ) : (
          <>
            {problem !== undefined && (
              <p class="bad" role="alert">
                Not logged in: {problem}
              </p>
            )}
            {link !== undefined && (
              <button type="button" class="main" onClick={() => void open(link)}>
                Try again with the link
              </button>
            )}
            <p>
              Ask whoever gave you your link for a new one, run <code>petrel login</code>, or log in
              with an API token.
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
