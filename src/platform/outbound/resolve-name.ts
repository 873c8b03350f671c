import { promises } from 'node:dns';

/** Milliseconds for one question, which is asked twice. */
const QUESTION_MS = 2_000;

/** @returns all addresses of a name, IPv4 first; none when it has none. */
export type ResolveName = (name: string, signal: AbortSignal) => Promise<readonly string[]>;

/**
 * Asks the name servers of this machine. Not by way of the system's own look-up: that holds one of the few
 * threads that all of the process shares for as long as a name server keeps silent.
 */
export const resolveName: ResolveName = async (name, signal) => {
  if (/(^|\.)localhost\.?$/i.test(name)) return ['127.0.0.1'];
  const resolver = new promises.Resolver({ timeout: QUESTION_MS, tries: 2 });
  const cancel = () => resolver.cancel();
  signal.addEventListener('abort', cancel, { once: true });
  try {
    const none = (): string[] => []; // that kind of address is not there, or not told in time
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
