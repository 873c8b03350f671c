import { isbot } from 'isbot';

/**
 * Decision 9: a request that says it is a program, or says nothing, or has filled in the field that
 * people do not see.
 */
export function looksAutomated(userAgent: string | undefined, hiddenField?: string): boolean {
  return !userAgent || isbot(userAgent) || Boolean(hiddenField);
}
