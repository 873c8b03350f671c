/**
 * What is not seen, or turns the text around it: controls, marks of direction, joiners, fillers. Emoji
 * are joined and coloured by two of them, which stay where they do that.
 */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;
const WITHIN_EMOJI = /(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f])[\u200d\ufe0f]/gu;

/** Whether a name shows all that it is made of: another that looks the same is the same. */
export function isVisible(text: string): boolean {
  return !UNSEEN.test(text.replace(WITHIN_EMOJI, ''));
}

/** What a name that is not is refused with. */
export const NOT_VISIBLE = 'must not contain characters that are not seen';
