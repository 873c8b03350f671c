/** The platform's list of its skills, in the runtime's state folder. */
export const SKILL_LIST = 'platform-skills.json';
