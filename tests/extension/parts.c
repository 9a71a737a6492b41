/*
 * An aggregate of aggregates, for tests/tests/server/aggregate/parts.rs: what a database that is spread over servers, such as
 * Citus, makes of an aggregate. part_of(aggregate, ROW(arguments)) runs its transition function over the rows of one server, and
 * gives the state as text; whole_of(aggregate, text) reads such states, combines them, and ends with the final function.
 *
 * As in PostgreSQL, functions are looked up again for each row and called without an expression, so that nothing but their declaration
 * tells them the types of their arguments; and the row's types have to be those that the aggregate is declared with.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_proc.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

PG_MODULE_MAGIC;

typedef struct Part
{
	Oid			transition;
	Oid			combine;
	Oid			final;
	Oid			type;			/* of the state, of variable length */
	NullableDatum state;
} Part;

PG_FUNCTION_INFO_V1(part_step);
PG_FUNCTION_INFO_V1(part_end);
PG_FUNCTION_INFO_V1(whole_step);
PG_FUNCTION_INFO_V1(whole_end);

/* The state behind argument 0, which the first call makes. */
static Part *
part_of_call(FunctionCallInfo fcinfo)
{
	MemoryContext context;
	HeapTuple	tuple;
	Form_pg_aggregate form;
	Part	   *part;

	if (!PG_ARGISNULL(0))
		return (Part *) PG_GETARG_POINTER(0);
	if (!AggCheckCallContext(fcinfo, &context))
		elog(ERROR, "parts: called outside of an aggregate");
	part = MemoryContextAllocZero(context, sizeof(Part));
	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(PG_GETARG_OID(1)));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "parts: no aggregate %u", PG_GETARG_OID(1));
	form = (Form_pg_aggregate) GETSTRUCT(tuple);
	part->transition = form->aggtransfn;
	part->combine = form->aggcombinefn;
	part->final = form->aggfinalfn;
	part->type = form->aggtranstype;
	ReleaseSysCache(tuple);
	part->state.isnull = true;
	return part;
}

/* Calls a function with nothing but its OID, as a part of the aggregate that calls us. */
static NullableDatum
call(FunctionCallInfo outer, Oid function, int nargs, NullableDatum *args)
{
	LOCAL_FCINFO(inner, FUNC_MAX_ARGS);
	FmgrInfo	info;
	NullableDatum result;

	fmgr_info(function, &info);
	InitFunctionCallInfoData(*inner, &info, nargs, outer->fncollation, outer->context, outer->resultinfo);
	memcpy(inner->args, args, nargs * sizeof(NullableDatum));
	result.value = FunctionCallInvoke(inner);
	result.isnull = inner->isnull;
	return result;
}

/* Keeps a state beyond this row, unless it is the one that is kept. */
static void
keep(FunctionCallInfo fcinfo, Part *part, NullableDatum state)
{
	MemoryContext context;
	MemoryContext caller;

	if (state.isnull)
		elog(ERROR, "parts: a function gave NULL");
	if (!part->state.isnull && part->state.value == state.value)
		return;
	if (!AggCheckCallContext(fcinfo, &context))
		elog(ERROR, "parts: called outside of an aggregate");
	caller = MemoryContextSwitchTo(context);
	state.value = datumCopy(state.value, false, -1);
	MemoryContextSwitchTo(caller);
	if (!part->state.isnull)
		pfree(DatumGetPointer(part->state.value));
	part->state = state;
}

/* Are these the types with which the function is declared? */
static bool
is_declared_with(Oid function, TupleDesc row)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Form_pg_proc form;
	bool		same;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "parts: no function %u", function);
	form = (Form_pg_proc) GETSTRUCT(tuple);
	same = form->pronargs == row->natts;
	for (int i = 0; same && i < row->natts; i++)
		same = form->proargtypes.values[i] == TupleDescAttr(row, i)->atttypid;
	ReleaseSysCache(tuple);
	return same;
}

/* (state, aggregate, row of arguments) */
Datum
part_step(PG_FUNCTION_ARGS)
{
	bool		first = PG_ARGISNULL(0);
	Part	   *part = part_of_call(fcinfo);
	HeapTupleHeader header = PG_GETARG_HEAPTUPLEHEADER(2);
	TupleDesc	row = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(header), HeapTupleHeaderGetTypMod(header));
	HeapTupleData tuple = {.t_len = HeapTupleHeaderGetDatumLength(header), .t_data = header};
	NullableDatum args[FUNC_MAX_ARGS];
	Datum		values[FUNC_MAX_ARGS];
	bool		nulls[FUNC_MAX_ARGS];

	if (first && !is_declared_with(PG_GETARG_OID(1), row))
		ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH), errmsg("parts: the aggregate is declared with other types")));
	heap_deform_tuple(&tuple, row, values, nulls);
	args[0] = part->state;
	for (int i = 0; i < row->natts; i++)
	{
		args[i + 1].value = values[i];
		args[i + 1].isnull = nulls[i];
	}
	keep(fcinfo, part, call(fcinfo, part->transition, row->natts + 1, args));
	ReleaseTupleDesc(row);
	PG_RETURN_POINTER(part);
}

/* The state as text; NULL if there was no row. */
Datum
part_end(PG_FUNCTION_ARGS)
{
	Part	   *part;
	Oid			output;
	bool		is_varlena;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	part = (Part *) PG_GETARG_POINTER(0);
	getTypeOutputInfo(part->type, &output, &is_varlena);
	PG_RETURN_TEXT_P(cstring_to_text(DatumGetCString(call(fcinfo, output, 1, &part->state).value)));
}

/* (state, aggregate, text of a state); the combine function is strict */
Datum
whole_step(PG_FUNCTION_ARGS)
{
	Part	   *part = part_of_call(fcinfo);
	Oid			input;
	Oid			parameter;
	NullableDatum args[3] = {0};

	if (PG_ARGISNULL(2))
		PG_RETURN_POINTER(part);
	getTypeInputInfo(part->type, &input, &parameter);
	args[0].value = CStringGetDatum(text_to_cstring(PG_GETARG_TEXT_PP(2)));
	args[1].value = ObjectIdGetDatum(parameter);
	args[2].value = Int32GetDatum(-1);
	args[1] = call(fcinfo, input, 3, args);
	if (part->state.isnull)
		keep(fcinfo, part, args[1]);
	else
	{
		args[0] = part->state;
		keep(fcinfo, part, call(fcinfo, part->combine, 2, args));
	}
	PG_RETURN_POINTER(part);
}

/* What the aggregate gives; NULL if there was no state. */
Datum
whole_end(PG_FUNCTION_ARGS)
{
	Part	   *part;

	if (PG_ARGISNULL(0) || ((Part *) PG_GETARG_POINTER(0))->state.isnull)
		PG_RETURN_NULL();
	part = (Part *) PG_GETARG_POINTER(0);
	PG_RETURN_DATUM(call(fcinfo, part->final, 1, &part->state).value);
}
