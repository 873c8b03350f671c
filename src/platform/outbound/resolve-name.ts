import { promises } from 'node:dns';

/** Milliseconds for one DNS query, which is tried twice. */
const QUESTION_MS = 2_000;

/** A resolver: returns all addresses of a name, IPv4 first, or an empty list. */
export type ResolveName = (name: string, signal: AbortSignal) => Promise<readonly string[]>;

/** Queries the name servers directly: a silent one would block a shared thread of the system's resolver. */
export const resolveName: ResolveName = async (name, signal) => {
  if (/(^|\.)localhost\.?$/i.test(name)) return ['127.0.0.1'];
  const resolver = new promises.Resolver({ timeout: QUESTION_MS, tries: 2 });
  const cancel = () => resolver.cancel();
  signal.addEventListener('abort', cancel, { once: true });
  try {
    const none = (): string[] => []; // no records of this address family, or a timeout
    const found = await Promise.all([
      resolver.resolve4(name).catch(none),
      resolver.resolve6(name).catch(none),
    ]);
    signal.throwIfAborted();
    return found.flat();
  } finally {
    signal.removeEventListener('abort', cancel);
  }
};
