import { isbot } from 'isbot';

/** Detects automated requests (decision 9) by a missing or a program's user agent, or the hidden field. */
export function isAutomated(userAgent: string | undefined, hiddenField?: string): boolean {
  return !userAgent || isbot(userAgent) || Boolean(hiddenField);
}
